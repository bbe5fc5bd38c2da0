"""Keys and values of all layers in pages."""

from __future__ import annotations

import torch

from .config import Config

PAGE = 64  # tokens; the attention kernel reads one page at a time
SCRATCH = 0  # the page that idle lanes and padding write to


def page_bytes(config: Config, dtype: torch.dtype) -> int:
    """Bytes of one page in all layers."""
    return 2 * config.layers * config.kv_heads * PAGE * config.head_size * dtype.itemsize


class Cache:
    """Pages of keys and values. keys and values are [layers, pages, kv_heads, PAGE, head_size]."""

    def __init__(self, config: Config, pages: int, device: torch.device, dtype: torch.dtype) -> None:
        shape = (config.layers, pages, config.kv_heads, PAGE, config.head_size)
        # Unwritten rows are masked, but 0 * NaN is NaN, so the pages must not hold NaN.
        self.keys = torch.zeros(shape, device=device, dtype=dtype)
        self.values = torch.zeros(shape, device=device, dtype=dtype)
        self.pages = pages
        self.reset()

    def reset(self) -> None:
        """Free all pages."""
        self._free = list(range(self.pages - 1, SCRATCH, -1))

    @property
    def free(self) -> int:
        """Number of free pages."""
        return len(self._free)

    def take(self, n: int) -> list[int]:
        """Reserve n pages. The caller has checked free."""
        taken = self._free[len(self._free) - n :]
        del self._free[len(self._free) - n :]
        return taken[::-1]

    def give(self, pages: list[int]) -> None:
        """Free pages."""
        self._free.extend(reversed(pages))

    def copy(self, sources: list[int], targets: list[int]) -> None:
        """Copy pages in all layers."""
        device = self.keys.device
        a = torch.tensor(sources, dtype=torch.int64).to(device, non_blocking=True)
        b = torch.tensor(targets, dtype=torch.int64).to(device, non_blocking=True)
        for tensor in (self.keys, self.values):
            for layer in tensor:
                layer.index_copy_(0, b, layer.index_select(0, a))
