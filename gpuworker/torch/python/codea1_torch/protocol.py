"""Frames between the Go parent and this process; PROTOCOL.md describes them."""

from __future__ import annotations

import os
import sys
import threading
from array import array
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import msgpack

VERSION = 3
# A frame is refused by its length, before it is read.
MAX_FRAME_BYTES = 512 << 20
_LENGTH_BYTES = 4

Frame: TypeAlias = dict[str, Any]


class ProtocolError(Exception):
    """The bytes of the other process are not the protocol. The connection cannot go on."""


def encode_frame(frame: Frame) -> bytes:
    body: bytes = msgpack.packb(frame)
    if len(body) > MAX_FRAME_BYTES:
        raise ProtocolError(f"a frame of {len(body)} bytes is over the limit of {MAX_FRAME_BYTES}")
    return len(body).to_bytes(_LENGTH_BYTES, "little") + body


class Reader:
    """Reads frames from a file descriptor."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def read(self) -> Frame | None:
        """Returns the next frame; None where the other process has closed the connection between two frames."""
        head = self._exactly(_LENGTH_BYTES, at_start=True)
        if head is None:
            return None
        length = int.from_bytes(head, "little")
        if not 0 < length <= MAX_FRAME_BYTES:
            raise ProtocolError(f"a frame of {length} bytes; the limit is {MAX_FRAME_BYTES}")
        body = self._exactly(length)
        try:
            frame = msgpack.unpackb(body, strict_map_key=True)
        except (ValueError, msgpack.UnpackException) as error:
            raise ProtocolError(f"a frame is not msgpack: {error}") from error
        if not isinstance(frame, dict):
            raise ProtocolError(f"a frame is a {type(frame).__name__}, not a map")
        return frame

    def _exactly(self, count: int, at_start: bool = False) -> bytes | None:
        parts: list[bytes] = []
        left = count
        while left > 0:
            part = os.read(self._fd, min(left, 1 << 20))
            if not part:
                if at_start and left == count:
                    return None
                raise ProtocolError("the connection ended inside a frame")
            parts.append(part)
            left -= len(part)
        return b"".join(parts)


class Writer:
    """Writes frames to a file descriptor. Any thread may call it."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lock = threading.Lock()

    def write(self, frame: Frame) -> None:
        data = memoryview(encode_frame(frame))
        with self._lock:
            while data:
                data = data[os.write(self._fd, data) :]


def pack(kind: str, values: Iterable[Any]) -> bytes:
    """Packs numbers as a little-endian blob; kind is a type code of the module array."""
    packed = array(kind, values)
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tobytes()


def unpack(kind: str, blob: object, name: str) -> list[Any]:
    """Returns the numbers of a blob; name is the field for the error."""
    values = array(kind)
    if not isinstance(blob, bytes) or len(blob) % values.itemsize:
        raise ProtocolError(f"field {name} is not a blob of {values.itemsize}-byte numbers")
    values.frombytes(blob)
    if sys.byteorder == "big":
        values.byteswap()
    return values.tolist()


def pack_ragged(kind: str, lists: Sequence[Sequence[Any]]) -> Frame:
    """Packs lists of numbers: their lengths, and their values one after the other."""
    return {"n": pack("i", map(len, lists)), "v": pack(kind, (value for values in lists for value in values))}


def unpack_ragged(kind: str, packed: object, name: str) -> list[list[Any]]:
    if not isinstance(packed, dict):
        raise ProtocolError(f"field {name} is not a map with n and v")
    lengths, values = unpack("i", packed.get("n"), name + ".n"), unpack(kind, packed.get("v"), name + ".v")
    if any(length < 0 for length in lengths) or sum(lengths) != len(values):
        raise ProtocolError(f"field {name} has {len(values)} values, but its lengths say {sum(lengths)}")
    lists, begin = [], 0
    for length in lengths:
        lists.append(values[begin : begin + length])
        begin += length
    return lists
