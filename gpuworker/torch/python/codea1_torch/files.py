"""Safetensors files, written and read by several threads.

One thread neither copies from and to a GPU nor uses a disk as fast as the machine can, and a trainer and a sampler wait for
each checkpoint.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from threading import get_native_id
from typing import NamedTuple, TypeAlias, TypeVar

import torch

THREADS = min(8, os.cpu_count() or 1)
CHUNK = 1 << 25  # bytes of a copy, a read or a write
_PARTS_OF_A_THREAD = 4

# In the order of a file's tensors.
_NAMES = {
    torch.int64: "I64",
    torch.float64: "F64",
    torch.float32: "F32",
    torch.int32: "I32",
    torch.bfloat16: "BF16",
    torch.float16: "F16",
    torch.uint8: "U8",
}

T = TypeVar("T")
Part: TypeAlias = tuple[torch.Tensor, int]  # bytes and their offset in a file


@dataclass(frozen=True)
class Rows:
    """Rows of a tensor. Other processes write its other rows."""

    tensor: torch.Tensor
    first: int
    shape: tuple[int, ...]  # of the whole tensor


def write_tensors(
    path: Path, tensors: Mapping[str, torch.Tensor | Rows], metadata: dict[str, str], flush: bool, rank: int = 0, summed: bool = False
) -> str:
    """Writes a new file with the bytes of safetensors' own save_file. Rank 0 writes its head, each rank its rows.

    With summed it returns the lines of the file in SHA256SUMS, which takes one rank: the sum, and the size in a comment.
    The kernel lets one thread at a time write to a file, so callers write several files at the same time.
    """
    types = list(_NAMES)
    every = {name: t if isinstance(t, Rows) else Rows(t, 0, tuple(t.shape)) for name, t in tensors.items()}
    ordered = dict(sorted(every.items(), key=lambda item: (types.index(item[1].tensor.dtype), item[0])))
    header: dict[str, object] = {"__metadata__": metadata}
    end = 0
    begins = []
    for name, rows in ordered.items():
        bytes_of = math.prod(rows.shape) * rows.tensor.itemsize
        begins.append(end + rows.first * math.prod(rows.shape[1:]) * rows.tensor.itemsize)
        header[name] = {"dtype": _NAMES[rows.tensor.dtype], "shape": list(rows.shape), "data_offsets": [end, end + bytes_of]}
        end += bytes_of
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    head = len(text).to_bytes(8, "little") + text
    parts: list[Part] = [(torch.frombuffer(bytearray(head), dtype=torch.uint8), 0)] if rank == 0 else []
    for begin, rows in zip(begins, ordered.values(), strict=True):
        offset = len(head) + begin
        data = rows.tensor.detach().contiguous().view(-1).view(torch.uint8)
        for part in data.split(CHUNK) if len(data) else ():
            parts.append((part, offset))
            offset += len(part)
    shared = any(isinstance(tensor, Rows) for tensor in tensors.values())
    device = next((r.tensor.device for r in every.values() if r.tensor.is_cuda), None)
    size = len(head) + end
    with open(os.open(path, os.O_CREAT | os.O_WRONLY | (0 if shared else os.O_EXCL), 0o666), "wb", buffering=0) as file:
        os.ftruncate(file.fileno(), size)
        digest = _write(file.fileno(), parts, device, summed)
        if flush:
            os.fsync(file.fileno())
    return f"{digest}  {path.name}\n# {size} bytes: {path.name}\n" if summed else ""


def _write(file: int, parts: list[Part], device: torch.device | None, summed: bool) -> str:
    """Writes parts at their offsets and returns the SHA-256 of all, in their order, if it shall.

    A part is written and summed at the same time, and copied from a device beside the sum of the part before.
    """
    digest = hashlib.sha256()
    buffers = [torch.empty(CHUNK, dtype=torch.uint8, pin_memory=True) for _ in range(2)] if device else []
    sums: deque[Future[None]] = deque()
    stream = torch.cuda.Stream(device) if device else None
    if stream:
        stream.wait_stream(torch.cuda.current_stream(device))  # which may still make the bytes of a part contiguous
    with ThreadPoolExecutor(1, initializer=yield_to_others) as pool, torch.cuda.stream(stream) if stream else nullcontext():
        for number, (data, offset) in enumerate(parts):
            while len(sums) > 1:
                sums.popleft().result()  # it read the buffer that this part takes
            here = data
            if data.is_cuda and stream:
                here = buffers[number % 2][: len(data)].copy_(data, non_blocking=True)
                stream.synchronize()
            values = here.numpy().data
            if summed:
                sums.append(pool.submit(digest.update, values))
            _put(file, values, offset)
        for last in sums:
            last.result()
    return digest.hexdigest()


def _put(file: int, values: memoryview, offset: int) -> None:
    """Writes bytes at an offset."""
    begin = offset
    while len(values):
        written = os.pwrite(file, values, offset)
        values, offset = values[written:], offset + written
    if hasattr(os, "posix_fadvise"):
        # Linux starts to write the bytes to the disk, beside the writes of the next ones.
        os.posix_fadvise(file, begin, offset - begin, os.POSIX_FADV_DONTNEED)


def yield_to_others() -> None:
    """Gives a thread that copies or sums a lower priority than the one that launches the work of a GPU."""
    if sys.platform == "linux":  # elsewhere the priority is that of the process
        os.setpriority(os.PRIO_PROCESS, get_native_id(), max(10, os.getpriority(os.PRIO_PROCESS, get_native_id())))


class Piece(NamedTuple):
    """A part of a tensor in a file."""

    path: Path
    name: str
    dtype: torch.dtype
    first: int  # element
    offset: int  # in the file
    size: int  # bytes


def require_finite(files: Mapping[Path, Iterable[str]]) -> None:
    """Raises ValueError where a tensor of files has a value that is not finite."""

    def check(pieces: list[Piece]) -> None:
        for piece, values in _read(pieces, pinned=False):
            if not torch.isfinite(values).all():
                raise ValueError(f"{piece.path}: {piece.name} has a value that is not finite")

    _share(_pieces(files), None, check)


def read_into(files: Mapping[Path, Mapping[str, torch.Tensor]]) -> None:
    """Overwrites contiguous tensors with those of files of the same shapes. A name is in one file."""
    tensors = {name: tensor for part in files.values() for name, tensor in part.items()}
    device = next((t.device for t in tensors.values() if t.is_cuda), None)

    def copy(pieces: list[Piece]) -> None:
        for piece, values in _read(pieces, pinned=device is not None):
            tensors[piece.name].view(-1)[piece.first : piece.first + len(values)].copy_(values, non_blocking=True)
            if device:
                torch.cuda.current_stream(device).synchronize()  # the next piece takes the same buffer

    _share(_pieces(files), device, copy)


def _pieces(files: Mapping[Path, Iterable[str]]) -> list[Piece]:
    types = {name: dtype for dtype, name in _NAMES.items()}
    pieces = []
    for path, names in files.items():
        with open(path, "rb") as file:
            size = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(size))
        for name in names:
            dtype = types.get(header[name]["dtype"])
            if dtype is None:
                raise ValueError(f"{path}: {name} has the type {header[name]['dtype']}, which is not supported")
            begin, end = header[name]["data_offsets"]
            for at in range(begin, end, CHUNK):
                pieces.append(Piece(path, name, dtype, (at - begin) // dtype.itemsize, 8 + size + at, min(CHUNK, end - at)))
    return pieces


def _read(pieces: list[Piece], pinned: bool) -> Iterator[tuple[Piece, torch.Tensor]]:
    """Yields the values of pieces. They are overwritten by those of the next piece."""
    buffer = torch.empty(CHUNK, dtype=torch.uint8, pin_memory=pinned)
    for piece in pieces:
        rest, offset = buffer[: piece.size].numpy().data, piece.offset
        with open(piece.path, "rb", buffering=0) as file:
            while len(rest):
                count = os.preadv(file.fileno(), [rest], offset)
                if not count:
                    raise ValueError(f"{piece.path} ends within {piece.name}")
                rest, offset = rest[count:], offset + count
        yield piece, buffer[: piece.size].view(piece.dtype)


def _share(parts: list[T], device: torch.device | None, work: Callable[[list[T]], None]) -> None:
    """Divides parts among threads. Each has a stream of its own on a GPU, behind the work that is queued there."""
    if device:
        torch.cuda.current_stream(device).synchronize()

    @torch.no_grad()
    def run(own: list[T]) -> None:
        with torch.cuda.stream(torch.cuda.Stream(device)) if device else nullcontext():
            work(own)

    threads = max(1, min(THREADS, len(parts) // _PARTS_OF_A_THREAD))
    shares = [own for i in range(threads) if (own := parts[i::threads])]
    with ThreadPoolExecutor(threads, initializer=yield_to_others) as pool:
        for done in [pool.submit(run, own) for own in shares]:
            done.result()
