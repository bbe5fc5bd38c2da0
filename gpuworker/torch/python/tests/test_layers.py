"""Tests of packing."""

from __future__ import annotations

import torch

from codea1_torch.layers import Packed


def test_padding_stays_within_the_positions() -> None:
    """Padding fills the row, and no position of it exceeds those of the sequences."""
    device = torch.device("cpu")
    for used in ([3, 5], [40], [1] * 10):
        for size in (None, sum(used), 200, 5000):
            packed = Packed.pack([[7] * n for n in used], device, size)
            total = size or sum(used)
            assert len(packed.tokens) == len(packed.positions) == sum(packed.lengths) == total
            assert packed.starts.tolist() == [sum(packed.lengths[:i]) for i in range(len(packed.lengths) + 1)]
            assert packed.lengths[: len(used)] == used
            assert int(packed.positions.max()) == max(used) - 1
            assert packed.tokens.tolist() == [7] * sum(used) + [0] * (total - sum(used))
