"""What can be tested of vLLM's sampler without a GPU. benchmarks/samplers.py runs the whole of it on one."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from conftest import model
from shipped import TEST

from codea1_torch.engine import Engine, Options
from codea1_torch.errors import BadRequest, Diverged
from codea1_torch.sampling import Params, Request
from codea1_torch.vllm_sampling import (
    VllmOptions,
    chunks,
    completion,
    engine_arguments,
    environment,
    require_installed,
    require_log_probs,
    sampling_arguments,
    update_info,
)


def test_a_missing_or_unknown_vllm_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"vllm": "", "ray": True}

    def version(name: str) -> str:
        if not found[name]:
            raise importlib.metadata.PackageNotFoundError(name)
        return str(found[name])

    monkeypatch.setattr(importlib.metadata, "version", version)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: found[name] or None)
    for installed, ray, error in (
        ("", True, "needs the Python package vllm, 0.22.1 to 0.26.0; `pip install"),
        ("0.22.0", True, "vllm 0.22.0 is installed, want 0.22.1 to 0.26.0"),
        ("0.26.1", True, "vllm 0.26.1 is installed"),
        ("0.22.1rc1", True, "vllm 0.22.1rc1 is installed"),
        ("0.22.1", False, "package ray"),
    ):
        found.update(vllm=installed, ray=ray)
        with pytest.raises(BadRequest, match=error):
            Engine(TEST, "cpu", options=Options(vllm=VllmOptions()))
    for installed in ("0.22.1", "0.24.0", "0.26.0", "0.26.0+cu130"):
        found.update(vllm=installed, ray=True)
        require_installed()
    with pytest.raises(BadRequest, match="needs a GPU"):
        Engine(TEST, "cpu", options=Options(vllm=VllmOptions()))
    for wrong in (VllmOptions(memory=1.0), VllmOptions(tensor_parallel=0), VllmOptions(data_parallel=0)):
        with pytest.raises(BadRequest):
            wrong.check("cuda")


def test_arguments() -> None:
    arguments = engine_arguments(Path("/model"), "bfloat16", VllmOptions(0.4, 2, 3), False)
    assert arguments["model"] == "/model" and arguments["gpu_memory_utilization"] == 0.4
    assert (arguments["tensor_parallel_size"], arguments["data_parallel_size"]) == (2, 3)
    assert arguments["logprobs_mode"] == "processed_logprobs"
    assert engine_arguments(Path("/model"), "bfloat16", VllmOptions(), True)["logprobs_mode"] == "raw_logprobs"

    two = sampling_arguments(Request([1, 2], [7, 2**64 - 1], [3, 4]), Params(0.7, 0.9, 5, 8), [9, 11])
    assert [each["max_tokens"] for each in two] == [3, 4]
    assert [each["seed"] for each in two] == [7, 2**63 - 1]
    assert all((e["temperature"], e["top_p"], e["top_k"], e["stop_token_ids"]) == (0.7, 0.9, 5, [9, 11]) for e in two)
    assert sampling_arguments(Request([1], [7]), Params(1.0, 1.0, 0, 8), [])[0]["max_tokens"] == 8

    for good in (Params(0.7, 1.0, 0, 1), Params(1.0, 0.9, 0, 1), Params(1.0, 1.0, 3, 1)):
        require_log_probs(good)
    for wrong in (Params(0.7, 0.9, 0, 1), Params(0.7, 1.0, 3, 1)):
        with pytest.raises(BadRequest, match=r"temperature 0\.7"):
            require_log_probs(wrong)


def test_the_environment_names_the_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_LOGGING_LEVEL", "DEBUG")
    devices = [torch.device("cuda", i) for i in (1, 2)]
    found = environment(devices, None, "/private")
    assert (found["CUDA_VISIBLE_DEVICES"], found["VLLM_RPC_BASE_PATH"]) == ("1,2", "/private")
    assert (found["VLLM_LOGGING_LEVEL"], found["VLLM_NO_USAGE_STATS"]) == ("DEBUG", "1")
    assert environment(devices, "GPU-a,GPU-b,GPU-c", "")["CUDA_VISIBLE_DEVICES"] == "GPU-b,GPU-c"


def output(tokens: list[int], log_probs: list[float], reason: str, each: int = 1) -> SimpleNamespace:
    """Return an answer of vLLM, with some log-probs for each position."""
    values = [p for q in log_probs for p in [q] + [-99.0] * (each - 1)]
    flat = SimpleNamespace(logprobs=values, start_indices=list(range(0, len(values), each)))
    return SimpleNamespace(token_ids=tokens, logprobs=flat, finish_reason=reason)


def test_completions() -> None:
    found = completion(output([4, 5, 9], [-0.5, 1e-9, -2.0], "stop", each=2), [9])
    assert (found.tokens, found.log_probs, found.finish) == ([4, 5, 9], [-0.5, 0.0, -2.0], "stop")
    assert completion(output([4], [-1.0], "length"), [9]).finish == "length"
    with pytest.raises(Diverged):
        completion(output([4], [float("nan")], "stop"), [9])
    for wrong in (None, output([4], [-1.0], "abort"), output([4, 5], [-1.0], "stop"), output([], [], "length")):
        with pytest.raises(RuntimeError):
            completion(wrong, [9])


def test_weights_are_named_as_in_a_checkpoint() -> None:
    tensors = list(model("cpu").tensors())
    parts = chunks(tensors, 100_000)
    assert [name for part in parts for name, _ in part] == [name for name, _ in tensors]
    assert len(parts) > 1 and all(len(part) == 1 or sum(t.nbytes for _, t in part) <= 100_000 for part in parts)
    copies = [t.clone() for _, t in tensors]
    info = update_info(tensors, {"GPU-a": copies, "GPU-b": copies})
    assert info["names"][0] == "model.embed_tokens.weight" and info["shapes"][0] == [300, 64] and info["dtype_names"][0] == "float32"
    assert len(info["ipc_handles"]) == len(tensors) and all(set(h) == {"GPU-a", "GPU-b"} for h in info["ipc_handles"])


_TREE = """
import multiprocessing, os, sys, time
from codea1_torch.vllm_child import as_main

def leaf(pids):
    pids.put(os.getpid())
    time.sleep(600)

def branch(pids):
    multiprocessing.get_context("spawn").Process(target=leaf, args=(pids,)).start()
    leaf(pids)

if __name__ == "__main__":
    import tree
    context = multiprocessing.get_context("spawn")
    pids = context.Queue()
    with as_main():
        context.Process(target=tree.branch, args=(pids,)).start()
    print(pids.get(), pids.get(), flush=True)
    time.sleep(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="vLLM runs on Linux")
def test_processes_die_with_the_one_that_started_them(tmp_path: Path) -> None:
    (tmp_path / "tree.py").write_text(_TREE)
    environment = {**os.environ, "PYTHONPATH": f"{Path(__file__).parents[1]}:{tmp_path}"}
    root = subprocess.Popen([sys.executable, str(tmp_path / "tree.py")], env=environment, stdout=subprocess.PIPE, text=True)
    assert root.stdout is not None
    pids = [int(text) for text in root.stdout.readline().split()]
    assert len(pids) == 2
    root.kill()
    root.wait()
    deadline = time.monotonic() + 120
    while any(running(pid) for pid in pids):
        assert time.monotonic() < deadline, "a process outlived its parent"
        time.sleep(0.05)


def running(pid: int) -> bool:
    """Report whether a process runs. One that its new parent has not yet waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except (FileNotFoundError, ProcessLookupError):
        return False
