"""The benchmarks run on the CPU with a small shape, so that they run on a GPU at once."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

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
        ("step.py", ["--questions", "1", "--tokens", "8", "--lengths"]),
    ],
)
def test_benchmark(tmp_path: Path, name: str, arguments: list[str]) -> None:
    out = tmp_path / "out.json"
    run(name, *arguments, "--out", str(out))
    found = json.loads(out.read_text())
    if name == "handover.py":
        assert found["bytes"] > 0 and set(found["seconds"]) == {"write weights", "write weights and optimizer", "read weights"}
    elif name == "protocol.py":
        assert set(found["in the engine"]) == {"encode_prompt", "sample", "log_probs", "update"}
        assert 0 < found["overhead"] < 1
    else:
        assert 0 < found["busy"] <= 1
        assert [(p["role"], p["name"]) for p in found["parts"][:2]] == [("code", "sample"), ("test", "sample")]
        assert len(found["parts"]) == len(found["parts with the profiler"]) == 8
        assert ElementTree.parse(out.with_suffix(".svg")).getroot().tag.endswith("svg")
