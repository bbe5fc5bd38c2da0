"""The benchmarks run on the CPU with a small shape, so that they run on a GPU at once."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from shipped import TEST

from codea1_torch.engine import Engine

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
PACKAGE = str(BENCHMARKS.parent)


def run(name: str, *arguments: str) -> None:
    command = [sys.executable, str(BENCHMARKS / name), "--small", "--device", "cpu", *arguments]
    done = subprocess.run(command, env={"PYTHONPATH": PACKAGE, "OMP_NUM_THREADS": "1", "PATH": ""}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("handover.py", ["--repetitions", "1"]),
        ("protocol.py", ["--groups", "1", "--tokens", "8"]),
        ("step.py", ["--questions", "1", "--tokens", "8"]),
    ],
)
def test_benchmark(tmp_path: Path, name: str, arguments: list[str]) -> None:
    out = tmp_path / "out.json"
    run(name, *arguments, "--out", str(out))
    found = json.loads(out.read_text())
    if name == "handover.py":
        assert found["bytes"] > 0 and set(found["seconds"]) == {
            "write weights",
            "write weights and optimizer",
            "sum weights",
            "read weights",
        }
    elif name == "protocol.py":
        assert set(found["in the engine"]) == {"encode_prompt", "sample", "log_probs", "update"}
        assert 0 < found["overhead"] < 1
    else:
        assert 0 < found["busy"] <= 1
        for parts in (found["parts"], found["parts with the profiler"]):
            # A checkpoint of the step before may reach into the step.
            names = [(p["role"], p["name"]) for p in parts if p["name"] != "save"]
            assert names == [("code", "sample"), ("test", "sample"), *((r, n) for r in ("code", "test") for n in ("reference", "update"))]
            assert ("code", "save") in [(p["role"], p["name"]) for p in parts]
        assert ElementTree.parse(out.with_suffix(".svg")).getroot().tag.endswith("svg")


@pytest.mark.skipif(os.environ.get("CODEA1_TEST_THOROUGH") != "1", reason="three processes import torch")
def test_gpus(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    run("gpus.py", "--repetitions", "1", "--out", str(out))
    found = json.loads(out.read_text())
    assert found["the weights are the same"]
    assert found["float32, greatest difference of a loss"] < 1e-5 and found["float32, greatest difference of a weight"] < 1e-5


def test_new_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "model"
    monkeypatch.setattr(sys, "argv", ["new_model.py", str(TEST), str(out), "num_hidden_layers=1", "intermediate_size=64"])
    runpy.run_path(str(BENCHMARKS / "new_model.py"), run_name="__main__")
    engine = Engine(out, "cpu")
    assert (engine.config.layers, engine.config.mlp) == (1, 64)
    assert engine.parameters < Engine(TEST, "cpu").parameters
