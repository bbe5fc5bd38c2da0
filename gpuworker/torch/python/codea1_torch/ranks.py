"""The ranks of a training: one process for each device. All make the same calls in the same order."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import torch
import torch.distributed as dist

from .errors import EngineError

# A rank that ends or hangs is noticed by its pipe; within this time another rank may compile or read files.
_PATIENCE = timedelta(hours=1)

T = TypeVar("T")


class Ranks:
    """The place of this process among the ranks. A single rank changes nothing and waits for nobody."""

    def __init__(self, rank: int = 0, size: int = 1) -> None:
        self.rank = rank
        self.size = size

    @staticmethod
    def join(rank: int, size: int, store: Path, device: str) -> Ranks:
        """Wait until all ranks have joined through a file."""
        use_loopback()
        backend = "gloo"
        if device != "cpu":
            torch.cuda.set_device(device)
            backend = "cpu:gloo,cuda:nccl"
        joined = dist.FileStore(str(store), size)  # type: ignore[attr-defined]
        dist.init_process_group(backend, store=joined, rank=rank, world_size=size, timeout=_PATIENCE)
        return Ranks(rank, size)

    def sum(self, values: torch.Tensor) -> torch.Tensor:
        """Replace values by their sums over the ranks, and return them."""
        if self.size > 1:
            dist.all_reduce(values)
        return values

    def least(self, value: int) -> int:
        """Return the least value of all ranks."""
        if self.size > 1:
            found = torch.tensor(value)
            dist.all_reduce(found, dist.ReduceOp.MIN)
            return int(found)
        return value

    def any(self, flag: bool) -> bool:
        """Report whether a flag is set on one of the ranks."""
        return flag if self.size == 1 else self.least(int(not flag)) == 0

    def gather(self, value: T) -> list[T]:
        """Return the values of all ranks."""
        if self.size == 1:
            return [value]
        found: list[T] = [value] * self.size
        dist.all_gather_object(found, value)
        return found

    @contextmanager
    def agreeing(self) -> Iterator[None]:
        """Raise an error of one rank on all of them. Otherwise the others would wait for it in their next call."""
        failed: EngineError | None = None
        try:
            yield
        except EngineError as error:
            failed = error
        failed = next((error for error in (failed, *self.gather(failed)) if error is not None), None)
        if failed is not None:
            raise failed


def use_loopback() -> None:
    """Let gloo and NCCL connect processes of this machine only, unless the environment names another interface."""
    for name in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
        os.environ.setdefault(name, "lo0" if sys.platform == "darwin" else "lo")


def share_out(lengths: Sequence[int], shares: int) -> list[list[int]]:
    """Divide indices into shares of about the same total length. The indices of a share ascend."""
    out: list[list[int]] = [[] for _ in range(shares)]
    totals = [0] * shares
    for i in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)) if shares > 1 else range(len(lengths)):
        least = totals.index(min(totals))
        out[least].append(i)
        totals[least] += lengths[i]
    return [sorted(share) for share in out]
