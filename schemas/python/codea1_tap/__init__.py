"""Reads the events of a codea1 training, and runs stages written in Python.

    import asyncio, codea1_tap

    async def main():
        async for event in codea1_tap.events("nats://tap:PASSWORD@127.0.0.1:4222", "RUN"):
            print(event.type, event.group, event.payload)

    asyncio.run(main())
"""

from __future__ import annotations

import array
import asyncio
import hashlib
import inspect
import io
import sys
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, AsyncIterator, Awaitable, Callable, Iterable, Mapping, Optional, Sequence, Tuple, Union

import msgpack
import nats
import zstandard
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy
from nats.js.errors import APIError, NotFoundError

from .types import PAYLOADS

__all__ = ["PAYLOADS", "Event", "dataframe", "decode", "encode", "events", "rows", "work"]

MAX_PAYLOAD = 8 << 20  # bytes after decompression
_WRONG_SEQUENCE = 10071  # the server's error for a subject that has a message


@dataclass(frozen=True)
class Event:
    """An event with its payload, which has the fields of PAYLOADS[type]."""

    id: str
    type: str
    run: str
    group: str
    source: str
    time: str
    payload: Any
    hash: str = field(repr=False)  # SHA-256 of the payload's msgpack bytes


def _unpacked(value: Any, name: str = "") -> Any:
    """Replaces the packed lists in a payload by lists of numbers."""
    if isinstance(value, dict):
        return {k: _unpacked(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [_unpacked(v, name) for v in value]
    if not isinstance(value, bytes) or name in ("passed", "failed"):  # rows of bits
        return value
    if "logprobs" in name:
        kind, raw = "f", value
    else:  # planes: the lowest byte of every number, then the second, the third, the highest
        n = len(value) // 4
        kind, raw = "i", bytes(value[n * (i % 4) + i // 4] for i in range(4 * n))
    numbers = array.array(kind, raw)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tolist()


def _whole(test: dict) -> None:
    """Adds the fields that a test leaves out because they are in its source."""
    if "split" in test:
        source = test["src"].encode()
        at = len(b"assert ") + test["split"]
        test["call"], test["stated"] = source[len(b"assert ") : at].decode(), source[at + len(b" == ") :].decode()
    if test["status"] == "kept":
        test.setdefault("expect", test.get("stated", ""))


def decode(headers: Optional[Mapping[str, str]], data: bytes) -> Event:
    """Returns the event of a NATS message. A message that is no event raises ValueError."""
    h = headers or {}
    if h.get("ce-type") not in PAYLOADS:
        raise ValueError(f"no event: its type is {h.get('ce-type')!r}")
    try:
        if h.get("content-encoding") == "zstd":
            with zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data)) as reader:
                data = reader.read(MAX_PAYLOAD + 1)
        if len(data) > MAX_PAYLOAD:
            raise ValueError(f"a payload of more than {MAX_PAYLOAD} bytes")
        payload = _unpacked(msgpack.unpackb(data))
        if h["ce-type"] == "code.executed":
            for test in (t for a in payload["answers"] for s in a.get("suites", ()) for t in s.get("tests", ())):
                _whole(test)
        return Event(
            h["ce-id"], h["ce-type"], h["ce-run"], h["ce-subject"], h["ce-source"], h["ce-time"], payload, hashlib.sha256(data).hexdigest()
        )
    except ValueError:
        raise
    except Exception as e:  # of a library, about bytes that anyone may have published
        raise ValueError(f"no event: {e!r}") from e


async def events(address: str, run: str, types: Iterable[str] = (), **connect: Any) -> AsyncIterator[Event]:
    """Yields the events of a run from now on; of all types, or of those in types.

    connect goes to nats.connect, for example token=... The reader acknowledges nothing,
    so it never changes a run.
    """
    client = await nats.connect(address, **connect)
    try:
        subscription = await client.subscribe(f"codea1.{run}.>")
        wanted = frozenset(types)
        async for message in subscription.messages:
            try:
                event = decode(message.headers, message.data)
            except ValueError:
                continue  # the recorder quarantines it
            if not wanted or event.type in wanted:
                yield event
    finally:
        await client.close()


def rows(events: Iterable[Event]) -> list:
    """Returns a flat dict for each event: its envelope, and the single values of its payload by
    their paths, such as metrics.loss. Lists are left out."""

    def flat(value: Mapping[str, Any], prefix: str = "") -> dict:
        out: dict = {}
        for name, v in value.items():
            if isinstance(v, dict):
                out.update(flat(v, f"{prefix}{name}."))
            elif not isinstance(v, (list, bytes)):
                out[prefix + name] = v
        return out

    return [{"time": e.time, "type": e.type, "group": e.group, "source": e.source, **flat(e.payload)} for e in events]


def dataframe(events: Iterable[Event]) -> Any:
    """Returns the rows of events as a pandas DataFrame."""
    import pandas

    return pandas.DataFrame(rows(events))


def _derived(*parts: str) -> str:
    return hashlib.sha256("".join(f"{len(p.encode())}:{p}" for p in parts).encode()).hexdigest()[:32]


def encode(cause: Event, kind: str, payload: Mapping[str, Any], source: str) -> Tuple[str, dict, bytes]:
    """Returns subject, headers and data of the event that follows from cause. The same cause
    gives the same ID, so an event that is made twice is stored once."""
    data = msgpack.packb(payload)
    event = _derived("cause", cause.id, kind)
    headers = {
        "ce-specversion": "1.0",
        "ce-id": event,
        "ce-type": kind,
        "ce-source": source,
        "ce-subject": cause.group,
        "ce-time": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "ce-run": cause.run,
        "ce-causationid": cause.id,
        "ce-causationhash": cause.hash,
        "ce-schemaversion": "1",
        "ce-traceparent": f"00-{_derived('trace', cause.run, cause.group)}-{event[:16]}-01",
        "content-type": "application/msgpack",
    }
    if len(data) >= 1024:
        headers["content-encoding"], data = "zstd", zstandard.compress(data)
    return f"codea1.{cause.run}.{kind}.{cause.group}", headers, data


Output = Optional[Tuple[str, Mapping[str, Any]]]
Handler = Callable[[Event], Union[Output, Awaitable[Output]]]


async def work(
    address: str, run: str, stage: str, consumes: Sequence[str], handle: Handler, ack_wait: float = 60, in_flight: int = 256, **connect: Any
) -> None:
    """Runs a replica of a worker stage until it is cancelled.

    handle gets an event and returns the type and the payload of the event that follows, or None.
    Replicas compete for the events, in whatever language they are written. An event is acknowledged
    after its output is stored; one whose handler raises is delivered again.
    """
    client = await nats.connect(address, max_reconnect_attempts=-1, **connect)
    try:
        bus, stream = client.jetstream(), f"codea1-{run}"
        filters = [f"codea1.{run}.{t}.*" for t in consumes] + [f"codea1.{run}.retry.{stage}.*.*"]
        config = ConsumerConfig(
            durable_name=stage, deliver_policy=DeliverPolicy.ALL, ack_policy=AckPolicy.EXPLICIT, ack_wait=ack_wait, max_deliver=-1,
            max_ack_pending=in_flight, filter_subjects=filters + [f"codea1.{run}.again.{t}.*.*" for t in consumes],
        )  # fmt: skip
        while True:
            try:
                await bus.add_consumer(stream, config)
                break
            except NotFoundError:  # the recorder has not begun the run
                await asyncio.sleep(1)
        subscription = await bus.pull_subscribe_bind(consumer=stage, stream=stream)
        while True:
            try:
                messages = await subscription.fetch(1, timeout=5)
            except (nats.errors.TimeoutError, nats.js.errors.ServiceUnavailableError, nats.js.errors.NoStreamResponseError):
                continue
            for message in messages:
                await _handle(bus, message, handle, f"{stage}-python")
    finally:
        await client.close()


async def _handle(bus: Any, message: Any, handle: Handler, source: str) -> None:
    try:
        event = decode(message.headers, message.data)
    except ValueError:
        await message.ack()  # it is no event: no stage can use it
        return
    try:
        output = handle(event)
        if inspect.isawaitable(output):
            output = await output
        if output:
            subject, headers, data = encode(event, *output, source)
            # The server stores no second message on a subject.
            await bus.publish(subject, data, headers={**headers, "Nats-Expected-Last-Subject-Sequence": "0"})
    except APIError as e:
        if e.err_code != _WRONG_SEQUENCE:
            raise
    except Exception as e:
        print(f"{event.type} {event.group}: {e!r}; it is delivered again", file=sys.stderr, flush=True)
        await message.nak(delay=5)
        return
    await message.ack()

