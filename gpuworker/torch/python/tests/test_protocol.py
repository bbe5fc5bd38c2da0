import os
import threading

import pytest

from codea1_torch import protocol


def pipe(data: bytes) -> protocol.Reader:
    """A reader of bytes that end with the connection."""
    reading, writing = os.pipe()

    def write() -> None:
        with os.fdopen(writing, "wb") as out:
            out.write(data)

    threading.Thread(target=write).start()
    return protocol.Reader(reading)


def test_frames_come_back() -> None:
    frames = [{"id": 1, "op": "encode", "contents": ["ü" * 100_000], "blob": bytes(70_000)}, {"id": 2}]
    reader = pipe(b"".join(map(protocol.encode_frame, frames)))
    assert [reader.read(), reader.read(), reader.read()] == [*frames, None]


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x00\x00\x00",
        b"\xff\xff\xff\xff",
        b"\x01\x00",
        b"\x05\x00\x00\x00\x81",
        b"\x01\x00\x00\x00\x07",
        b"\x01\x00\x00\x00\xc1",
        b"\x05\x00\x00\x00\xdf\xff\xff\xff\xff",
        b"Loading weights: 100%",
    ],
)
def test_wrong_frames_are_refused(data: bytes) -> None:
    with pytest.raises(protocol.ProtocolError):
        pipe(data).read()


def test_a_long_frame_is_not_written() -> None:
    with pytest.raises(protocol.ProtocolError, match="limit"):
        protocol.encode_frame({"blob": bytes(protocol.MAX_FRAME_BYTES)})


def test_numbers_come_back() -> None:
    assert protocol.pack("i", [1, -2]) == b"\x01\0\0\0\xfe\xff\xff\xff"
    lists = [[2**64 - 1, 0], [], [7]]
    assert protocol.unpack_ragged("Q", protocol.pack_ragged("Q", lists), "seeds") == lists


@pytest.mark.parametrize(
    "packed",
    [None, {}, {"n": b"", "v": b"abc"}, {"n": b"\x01\0\0\0", "v": b""}, {"n": b"\xff\xff\xff\xff", "v": b""}, {"n": "1", "v": b""}],
)
def test_wrong_lists_are_refused(packed: object) -> None:
    with pytest.raises(protocol.ProtocolError, match="tokens"):
        protocol.unpack_ragged("i", packed, "tokens")
