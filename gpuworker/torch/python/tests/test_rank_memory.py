"""Ranks on the CPU, as the Go process starts them, where one has no memory for a pass."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from shipped import TEST
from test_two_gpus import ADAM, OPEN, PPO, Child

from codea1_torch.engine import Engine, Options
from codea1_torch.protocol import pack, pack_ragged

# Rank 1 fails as a GPU without memory does.
SITE = """
import importlib.util, sys

class Finder:
    def find_spec(self, name, path, target=None):
        if name != "codea1_torch.learning":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module
        def patched(module):
            execute(module)
            backward = module.Learner._backward
            def limited(self, batch, *rest):
                if self._ranks.rank == 1 and len(batch) > 1:
                    raise module.torch.OutOfMemoryError("no memory is left")
                return backward(self, batch, *rest)
            module.Learner._backward = limited
        spec.loader.exec_module = patched
        return spec

sys.meta_path.insert(0, Finder())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the pipes are inherited")
def test_a_rank_without_memory_ends_the_child_with_that_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text(SITE)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    child = Child(tmp_path / "log", str(tmp_path))
    child.call("open", dir=str(TEST), device="cpu", **OPEN)
    child.call("load", dir=str(TEST))
    texts, none = pack_ragged("i", [[1, 2, 3]] * 6), pack_ragged("f", [[]] * 6)
    sequences = {"prompts": texts, "tokens": texts, "old_probs": pack_ragged("f", [[-1.0] * 3] * 6), "ref_probs": none, "weights": none}
    child.send("update", loss="ppo", **PPO, **ADAM, **sequences, advantages=pack("d", [1.0] * 6))
    frames = []
    while (frame := child.reader.read()) is not None:
        if frame["kind"] in ("result", "error"):
            frames.append(frame)
    assert [(frame.get("code"), frame.get("fatal"), frame["id"]) for frame in frames] == [("out_of_memory", True, 3)], frames
    assert "rank 1" in frames[0]["message"]
    assert child.process.wait(300) != 0


def test_halvings_make_smaller_passes() -> None:
    def micro(halvings: int) -> int:
        return Engine(TEST, "cpu", options=Options(halvings=halvings))._ready_learner().micro_tokens

    assert [micro(n) for n in (0, 1, 3)] == [4096, 2048, 512]
