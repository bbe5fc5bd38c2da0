"""Weights from a trainer to the samplers of other processes of this machine: by NCCL between GPUs, by gloo between CPUs.

A trainer that saves a checkpoint keeps a copy of its weights and listens. A sampler that shall load this checkpoint asks for
the copy. Each sampler has a group of its own with the trainer, so the end of a sampler disturbs no other. A sampler reads the
files where no trainer listens, where the trainer has another checkpoint, other types or the same GPU, and after an error or a
deadline.
"""

from __future__ import annotations

import os
import shutil
import socket
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from . import logs
from .errors import SamplerLost
from .model import Model
from .protocol import Frame, ProtocolError, Reader, Writer
from .ranks import use_loopback

SECONDS = 30.0  # for each answer, for a group to form, and for all weights; they need less than one
_SAVES = 3  # without a question between them, after which the trainer keeps no more copies
_FAILURES = 3  # after which a sampler only reads files

# NCCL's errors must not end the process, and nothing may need the store of a group after it has formed.
_NCCL = {"TORCH_NCCL_ASYNC_ERROR_HANDLING": "0", "TORCH_NCCL_ENABLE_MONITORING": "0", "TORCH_NCCL_DUMP_ON_TIMEOUT": "0"}


class Offer:
    """The weights of a trainer's newest checkpoint, for the samplers that ask."""

    def __init__(self) -> None:
        self._listener: socket.socket | None = None
        self._lock = threading.Lock()  # of the weights; a transfer holds it
        self._stuck = False  # a transfer holds the lock for ever
        self._weights: list[torch.Tensor] = []
        self._sums: list[int] = []
        self._holds: object = None  # identity of the checkpoint; None: no weights
        self._unasked = _SAVES

    def take(self, folder: Path, holds: object, model: Model) -> None:
        """Offer the weights of a checkpoint in a folder, if a sampler asked for one lately."""
        if not self._listen(folder, model) or not self._acquire():
            return
        try:
            self._holds = None
            self._unasked += 1
            if self._unasked > _SAVES:
                self._weights = []
                return
            source = [p.detach() for p in model.parameters()]
            if not self._weights:
                self._weights = [torch.empty_like(p) for p in source]
            torch._foreach_copy_(self._weights, source)
            self._sums = _sums(self._weights)
            self._holds = holds
        except torch.OutOfMemoryError:
            self._weights = []
        finally:
            self._lock.release()

    def drop(self) -> bool:
        """Free the memory of the copy. It reports whether there was one."""
        if not self._weights or not self._acquire():
            return False
        self._weights, self._holds, self._unasked = [], None, _SAVES
        self._lock.release()
        return True

    def _acquire(self) -> bool:
        self._stuck = self._stuck or not self._lock.acquire(timeout=2 * SECONDS)
        return not self._stuck

    def _listen(self, folder: Path, model: Model) -> bool:
        if self._listener is None and sys.platform.startswith("linux"):
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                listener.bind(_address(folder))
                listener.listen()
            except OSError as error:  # another trainer has not ended yet
                listener.close()
                logs.info("other processes get this trainer's weights by file", error=str(error))
                return False
            self._listener = listener
            threading.Thread(target=self._accept, args=(listener, *_kind(model)), daemon=True).start()
        return self._listener is not None

    def _accept(self, listener: socket.socket, kind: Frame, device: torch.device) -> None:
        while True:
            connection, _ = listener.accept()
            if _of_this_user(connection):
                threading.Thread(target=self._serve, args=(connection, kind, device), daemon=True).start()
            else:
                connection.close()

    def _serve(self, connection: socket.socket, kind: Frame, device: torch.device) -> None:
        """Serve a sampler until it ends."""
        private = Path(tempfile.mkdtemp(prefix="codea1-weights-"))
        group = None
        try:
            with connection, torch.cuda.stream(torch.cuda.Stream(device)) if device.type == "cuda" else nullcontext():
                reader, writer = Reader(connection.fileno()), Writer(connection.fileno())
                ask = reader.read()
                if ask is None or not _fits(kind, ask):
                    writer.write({"store": ""})
                    return
                writer.write({"store": str(private / "store")})
                group = _join(private / "store", 0, device)
                while (ask := reader.read()) is not None:
                    with self._lock:
                        self._unasked = 0
                        has = self._holds is not None and _listed(self._holds) == ask.get("holds")
                        writer.write({"sums": self._sums if has else []})
                        if has:
                            _transfer(group, self._weights, connection)
        except Exception as error:  # of any kind: the sampler has the files
            logs.warning("a sampler could not get this trainer's weights; it reads the files", error=str(error))
        finally:
            if group is not None:
                group.abort()
            shutil.rmtree(private, ignore_errors=True)


class Receiver:
    """A sampler's connection to its trainer."""

    def __init__(self) -> None:
        self._connection: socket.socket | None = None
        self._folder: Path | None = None
        self._group: Any = None
        self._failures = 0

    def receive(self, folder: Path, holds: object, model: Model) -> bool:
        """Report whether the model got the weights of a checkpoint. Otherwise it may have any values."""
        if self._failures >= _FAILURES or not sys.platform.startswith("linux"):
            return False
        began = time.monotonic()
        try:
            if self._connection is None or self._folder != folder:
                self._close()
                if not self._connect(folder, model):
                    return False
            assert self._connection is not None
            writer, reader = Writer(self._connection.fileno()), Reader(self._connection.fileno())
            writer.write({"holds": _listed(holds)})
            answer = reader.read()
            if answer is None:
                raise BrokenPipeError
            sums = answer.get("sums")
            if not sums:
                return False
            weights = [p.detach() for p in model.parameters()]
            _transfer(self._group, weights, self._connection)
            if _sums(weights) != sums:
                raise ProtocolError("the weights that came are not those of the trainer")
        except BrokenPipeError:  # the trainer ended since the last version; another one may listen
            self._close()
            return False
        except Exception as error:  # of any kind: the files remain
            logs.warning("the trainer's weights did not come, the files are read", error=str(error))
            self._failures += 1
            self._close()
            return False
        self._failures = 0
        logs.info("weights came from the trainer", seconds=round(time.monotonic() - began, 4))
        return True

    def _connect(self, folder: Path, model: Model) -> bool:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(_address(folder))
        except OSError:
            connection.close()
            return False  # no trainer on this machine
        self._connection, self._folder = connection, folder
        if not _of_this_user(connection):
            raise ProtocolError("a process of another user has the trainer's address")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", *divmod(int(SECONDS * 1e6), 1_000_000)))
        kind, device = _kind(model)
        Writer(connection.fileno()).write(kind)
        store = (Reader(connection.fileno()).read() or {}).get("store")
        if not store:
            self._failures = _FAILURES  # the answer stays the same
            self._close()
            return False
        # A group that never forms must not hang the sampler. Its thread has no tensor of the model.
        self._group = _within(lambda: _join(Path(store), 1, device))
        return True

    def _close(self) -> None:
        group, self._group = self._group, None
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if group is None:
            return
        try:
            _within(group.abort)  # after which nothing writes to the model's weights
        except TimeoutError as error:
            raise SamplerLost("the group with the trainer does not end") from error
        except Exception as error:
            logs.warning("end of the group with the trainer", error=str(error))


def _address(folder: Path) -> bytes:
    """Return the name of a trainer's socket. No file belongs to it, and it ends with the trainer."""
    place = folder.stat()
    return b"\0codea1-weights-%d-%d-%d" % (os.getuid(), place.st_dev, place.st_ino)


def _of_this_user(connection: socket.socket) -> bool:
    _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    return bool(user == os.getuid())


def _kind(model: Model) -> tuple[Frame, torch.device]:
    """Return what the weights of two processes must have alike, with the GPU that they must not, and the device."""
    device = model.device
    gpu = str(torch.cuda.get_device_properties(device).uuid) if device.type == "cuda" else ""
    return {"type": device.type, "dtype": str(model.dtype), "shapes": [list(p.shape) for p in model.parameters()], "gpu": gpu}, device


def _fits(own: Frame, other: Frame) -> bool:
    same = all(own[name] == other.get(name) for name in ("type", "dtype", "shapes"))
    return same and (not own["gpu"] or own["gpu"] != other.get("gpu"))


def _listed(holds: object) -> object:
    """Return an identity as it is after a way through msgpack."""
    return [_listed(each) for each in holds] if isinstance(holds, (tuple, list)) else holds


def _sums(weights: list[torch.Tensor]) -> list[int]:
    """Return a sum of the bits of each weight."""
    kinds = {2: torch.int16, 4: torch.int32, 8: torch.int64}
    found: list[int] = torch.stack([w.view(kinds[w.element_size()]).sum(dtype=torch.int64) for w in weights]).tolist()
    return found


def _join(store: Path, rank: int, device: torch.device) -> Any:
    """Return a group of two processes that has formed."""
    use_loopback()
    patience = timedelta(seconds=SECONDS)
    shared = dist.FileStore(str(store), 2)  # type: ignore[attr-defined]
    shared.set_timeout(patience)
    if device.type == "cpu":
        group: Any = dist.ProcessGroupGloo(shared, rank, 2, patience)
    else:
        options = dist.ProcessGroupNCCL.Options(is_high_priority_stream=True)
        options._timeout = patience
        with _environment(_NCCL):
            group = dist.ProcessGroupNCCL(shared, rank, 2, options)
    _wait([group.broadcast(torch.zeros(1, device=device), 0)])  # the first call forms the group
    return group


@contextmanager
def _environment(settings: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _transfer(group: Any, weights: list[torch.Tensor], connection: socket.socket) -> None:
    """Copy the trainer's weights to the sampler."""

    def ended() -> bool:
        try:
            return connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False

    _wait([group.broadcast(w, 0) for w in weights], ended)


def _wait(works: list[Any], ended: Callable[[], bool] = lambda: False) -> None:
    last = time.monotonic() + SECONDS
    for work in works:
        while not work.is_completed():
            if time.monotonic() > last:
                raise TimeoutError(f"a transfer took over {SECONDS:.0f} s")
            if ended():
                raise ConnectionError("the other process has ended")
            time.sleep(0.0005)
        work.wait()


def _within(work: Callable[[], Any]) -> Any:
    """Run work in a thread, and leave it there after the deadline."""
    outcome: list[Any] = []
    failed: list[Exception] = []

    def run() -> None:
        try:
            outcome.append(work())
        except Exception as error:
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(2 * SECONDS)
    if failed:
        raise failed[0]
    if thread.is_alive():
        raise TimeoutError(f"no group with the trainer within {2 * SECONDS:.0f} s")
    return outcome[0]
