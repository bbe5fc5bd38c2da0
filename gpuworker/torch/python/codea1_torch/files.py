"""Safetensors files, written and read by several threads.

One thread neither copies from and to a GPU nor uses a disk as fast as the machine can, and a trainer and a sampler wait for
each checkpoint.
"""

from __future__ import annotations

import json
import math
import mmap
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TypeVar

import torch

THREADS = min(8, os.cpu_count() or 1)
CHUNK = 1 << 25  # bytes of a copy, a read or a write

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

# Held while a thread copies from a GPU for a file, and while a graph is captured: beside such copies, CUDA refuses the capture.
DEVICE = Lock()

T = TypeVar("T")


@dataclass(frozen=True)
class Rows:
    """Rows of a tensor. Other processes write its other rows."""

    tensor: torch.Tensor
    first: int
    shape: tuple[int, ...]  # of the whole tensor


def write_tensors(path: Path, tensors: Mapping[str, torch.Tensor | Rows], metadata: dict[str, str], flush: bool, rank: int = 0) -> None:
    """Writes a new file with the bytes of safetensors' own save_file. Rank 0 writes its head, each rank its rows."""
    types = list(_NAMES)
    every = {name: t if isinstance(t, Rows) else Rows(t, 0, tuple(t.shape)) for name, t in tensors.items()}
    ordered = dict(sorted(every.items(), key=lambda item: (types.index(item[1].tensor.dtype), item[0])))
    header: dict[str, object] = {"__metadata__": metadata}
    end = 0
    begins = []
    for name, rows in ordered.items():
        size = math.prod(rows.shape) * rows.tensor.itemsize
        begins.append(end + rows.first * math.prod(rows.shape[1:]) * rows.tensor.itemsize)
        header[name] = {"dtype": _NAMES[rows.tensor.dtype], "shape": list(rows.shape), "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    head = len(text).to_bytes(8, "little") + text
    parts = []
    for begin, rows in zip(begins, ordered.values(), strict=True):
        offset = len(head) + begin
        data = rows.tensor.detach().contiguous().view(-1).view(torch.uint8)
        for part in data.split(CHUNK) if len(data) else ():
            parts.append((part, offset))
            offset += len(part)
    shared = any(rows.shape != rows.tensor.shape for rows in every.values())
    device = next((r.tensor.device for r in every.values() if r.tensor.is_cuda), None)
    with open(os.open(path, os.O_CREAT | os.O_RDWR | (0 if shared else os.O_EXCL), 0o666), "rb+", buffering=0) as file:
        put = _mapped(file.fileno(), len(head) + end) if len(head) + end >= CHUNK and _in_memory(file.fileno()) else _direct(file.fileno())
        if rank == 0:
            put(torch.frombuffer(bytearray(head), dtype=torch.uint8), 0)
        _share(parts, device, lambda own: _write(put, own))
        if flush:
            os.fsync(file.fileno())


def _write(put: Callable[[torch.Tensor, int], None], parts: list[tuple[torch.Tensor, int]]) -> None:
    buffer: torch.Tensor | None = None
    for data, offset in parts:
        here = data
        if data.is_cuda:
            with DEVICE:
                if buffer is None:
                    buffer = torch.empty(CHUNK, dtype=torch.uint8, pin_memory=True)
                here = buffer[: len(data)].copy_(data, non_blocking=True)
                torch.cuda.current_stream(data.device).synchronize()
        put(here, offset)


def _direct(file: int) -> Callable[[torch.Tensor, int], None]:
    """Returns a function that writes bytes at an offset."""

    def put(data: torch.Tensor, offset: int) -> None:
        begin, rest = offset, data.numpy().data
        while len(rest):
            written = os.pwrite(file, rest, offset)
            rest, offset = rest[written:], offset + written
        if hasattr(os, "posix_fadvise"):
            # Linux starts to write the bytes to the disk, beside the writes of the next ones.
            os.posix_fadvise(file, begin, offset - begin, os.POSIX_FADV_DONTNEED)

    return put


def _mapped(file: int, size: int) -> Callable[[torch.Tensor, int], None]:
    """Returns a function that copies bytes to an offset of a file in memory.

    The kernel lets only one thread at a time write to a file, but many copy to its pages.
    """
    os.posix_fallocate(file, 0, size)  # without it, a full file system kills the process at a copy
    pages = torch.frombuffer(mmap.mmap(file, size), dtype=torch.uint8)

    def put(data: torch.Tensor, offset: int) -> None:
        pages[offset : offset + len(data)].copy_(data)

    return put


def _in_memory(file: int) -> bool:
    """Reports whether Linux keeps the file system of a file in memory."""
    device = os.fstat(file).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as mounts:
            return any(line.split()[2] == number and line.partition(" - ")[2].startswith("tmpfs ") for line in mounts)
    except OSError:
        return False


def require_finite(path: Path, names: list[str]) -> None:
    """Raises ValueError where a tensor of a file has a value that is not finite."""

    def check(parts: list[tuple[str, torch.dtype, int, int, int]]) -> None:
        for name, _, values in _read(path, parts, pinned=False):
            if not torch.isfinite(values).all():
                raise ValueError(f"{path}: {name} has a value that is not finite")

    _share(_parts(path, names), None, check)


def read_into(path: Path, tensors: dict[str, torch.Tensor]) -> None:
    """Overwrites contiguous tensors with those of a file of the same shapes."""
    device = next((t.device for t in tensors.values() if t.is_cuda), None)

    def copy(parts: list[tuple[str, torch.dtype, int, int, int]]) -> None:
        for name, first, values in _read(path, parts, pinned=device is not None):
            tensors[name].view(-1)[first : first + len(values)].copy_(values, non_blocking=True)
            if device:
                torch.cuda.current_stream(device).synchronize()  # the next part takes the same buffer

    _share(_parts(path, list(tensors)), device, copy)


def _parts(path: Path, names: list[str]) -> list[tuple[str, torch.dtype, int, int, int]]:
    """Returns name, type, first element, place in the file and bytes of the parts of tensors."""
    types = {name: dtype for dtype, name in _NAMES.items()}
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
    parts = []
    for name in names:
        dtype = types.get(header[name]["dtype"])
        if dtype is None:
            raise ValueError(f"{path}: {name} has the type {header[name]['dtype']}, which is not supported")
        begin, end = header[name]["data_offsets"]
        for at in range(begin, end, CHUNK):
            parts.append((name, dtype, (at - begin) // dtype.itemsize, 8 + size + at, min(CHUNK, end - at)))
    return parts


def _read(path: Path, parts: list[tuple[str, torch.dtype, int, int, int]], pinned: bool) -> Iterator[tuple[str, int, torch.Tensor]]:
    """Yields name, first element and values of parts. The values are overwritten by those of the next part."""
    buffer = torch.empty(CHUNK, dtype=torch.uint8, pin_memory=pinned)
    with open(path, "rb", buffering=0) as file:
        for name, dtype, first, offset, size in parts:
            rest = buffer[:size].numpy().data
            while len(rest):
                count = os.preadv(file.fileno(), [rest], offset)
                if not count:
                    raise ValueError(f"{path} ends within {name}")
                rest, offset = rest[count:], offset + count
            yield name, first, buffer[:size].view(dtype)


def _share(parts: list[T], device: torch.device | None, work: Callable[[list[T]], None]) -> None:
    """Divides parts among threads. Each has a stream of its own on a GPU, behind the work that is queued there."""
    if device:
        with DEVICE:
            torch.cuda.current_stream(device).synchronize()

    @torch.no_grad()
    def run(own: list[T]) -> None:
        with DEVICE:
            stream = torch.cuda.Stream(device) if device else None
        with torch.cuda.stream(stream) if stream else nullcontext():
            work(own)

    shares = [own for i in range(THREADS) if (own := parts[i::THREADS])]
    with ThreadPoolExecutor(THREADS) as pool:
        for done in [pool.submit(run, own) for own in shares]:
            done.result()
