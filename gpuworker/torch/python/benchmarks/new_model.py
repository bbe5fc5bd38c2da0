"""Writes a checkpoint of another shape, with random weights and the tokenizer of the one that is given.

Usage: python benchmarks/new_model.py CHECKPOINT OUT KEY=NUMBER...  (keys of config.json)
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from codea1_torch import checkpoint
from codea1_torch.model import Config, Model


def main() -> None:
    """Write the checkpoint and print its number of weights."""
    source, out = Path(sys.argv[1]), Path(sys.argv[2])
    raw = checkpoint.read_json(source / checkpoint.CONFIG)
    for pair in sys.argv[3:]:
        key, _, number = pair.partition("=")
        raw[key] = int(number)
    model = Model(Config.parse(raw), device="cpu", dtype=torch.bfloat16)
    model.initialize(1)
    with checkpoint.new_directory(out) as directory:
        checkpoint.write(directory, model.tensors(), None, raw, checkpoint.read_carried(source))
    print(f"{out}: {sum(t.numel() for _, t in model.tensors()):,} weights")


if __name__ == "__main__":
    main()
