"""The checkpoints of the embedded engine, which come with codea1."""

from pathlib import Path

TEST = Path(__file__).parents[3] / "tiny" / "checkpoints" / "test"
assert TEST.is_dir(), TEST
