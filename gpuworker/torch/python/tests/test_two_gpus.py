"""The child with two ranks on two GPUs, as the Go process uses it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from shipped import TEST

from codea1_torch.protocol import Frame, Reader, Writer, pack, pack_ragged

TWO_GPUS = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")

OPEN = {
    "optimizer_state": "device",
    "reference": "device",
    "lora_rank": 0,
    "lora_alpha": 0.0,
    "lora_targets": [],
    "sampler": "builtin",
    "train_gpus": 2,
    "broadcast": 0,
    "halvings": 0,
}
PPO = {
    "clip_low": 0.2,
    "clip_high": 0.28,
    "dual_clip": 10.0,
    "log_ratio_clamp": 20.0,
    "kl_coef": 0.0,
    "temperature": 1.0,
    "learning_rate": 1e-4,
}
ADAM = {"weight_decay": 0.1, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "grad_clip": 1.0}


class Child:
    def __init__(self, log: Path, before: str = "") -> None:
        requests, self._requests = os.pipe()
        self._answers, answers = os.pipe()
        self.log = log
        command = [sys.executable, "-m", "codea1_torch", "serve", "--requests", str(requests), "--answers", str(answers)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (before, str(Path(__file__).parents[1]))))}
        with open(log, "wb") as file:
            self.process = subprocess.Popen(command, pass_fds=(requests, answers), stdout=file, stderr=file, env=environment)
        os.close(requests)
        os.close(answers)
        self.reader, self._writer, self._id = Reader(self._answers), Writer(self._requests), 0
        self.answer("hello")

    def send(self, op: str, **fields: object) -> None:
        self._id += 1
        self._writer.write({"id": self._id, "op": op, **fields})

    def answer(self, kind: str) -> Frame:
        while (frame := self.reader.read()) is not None:
            if frame["kind"] in (kind, "error"):
                assert frame["kind"] == kind, frame
                return frame
        raise AssertionError(self.log.read_text())

    def call(self, op: str, **fields: object) -> Frame:
        self.send(op, **fields)
        return self.answer("result")


@TWO_GPUS
def test_the_second_gpu_samples(tmp_path: Path) -> None:
    child = Child(tmp_path / "log")
    child.call("open", dir=str(TEST), device="cuda:1", **{**OPEN, "train_gpus": 1})
    prompt = child.call("encode", roles=["user"], contents=["Return xs."])["prompt"]
    prompts = {"n": pack("i", [len(prompt) // 4]), "v": prompt}
    answer = child.call("sample", prompts=prompts, seeds=pack_ragged("Q", [[1]]), temperature=1.0, top_p=1.0, top_k=0, max_tokens=9)
    assert len(answer["texts"]) == 1


@TWO_GPUS
def test_a_step_and_a_kill(tmp_path: Path) -> None:
    child = Child(tmp_path / "log")
    child.call("open", dir=str(TEST), device="cuda", **OPEN)
    child.call("load", dir=str(TEST))
    child.call("load_reference", dir=str(TEST))
    prompt = child.call("encode", roles=["user"], contents=["Return xs."])["prompt"]
    lengths = pack("i", [len(prompt) // 4])
    sampling = {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "max_tokens": 40}

    def sample() -> Frame:
        return child.call("sample", prompts={"n": lengths, "v": prompt}, seeds=pack_ragged("Q", [list(range(8))]), **sampling)

    first = sample()
    tokens = first["tokens"]
    none = {"n": pack("i", [0] * 8), "v": b""}
    sequences = {
        "prompts": {"n": lengths * 8, "v": prompt * 8},
        "tokens": tokens,
        "old_probs": {"n": tokens["n"], "v": first["log_probs"]},
        "ref_probs": none,
        "weights": none,
        "advantages": pack("d", [1.0, -1.0] * 4),
    }
    for policy in ("current", "reference"):
        found = child.call("log_probs", policy=policy, temperature=1.0, **sequences)["log_probs"]
        have, want = (torch.frombuffer(bytearray(b), dtype=torch.float32) for b in (found, first["log_probs"]))
        torch.testing.assert_close(have, want, rtol=0, atol=0.2)
    update = {"loss": "ppo", **PPO, **ADAM, **sequences}
    assert child.call("update", **update)["grad_norm"] > 0
    saved = tmp_path / "v1"
    saved.mkdir()
    child.call("save", dir=str(saved))
    weights, masters = load_file(saved / "model.safetensors"), load_file(saved / "masters.safetensors")
    assert all(masters["master." + name].bfloat16().equal(tensor) for name, tensor in weights.items())
    assert any(not tensor.equal(weights[name].to(tensor.dtype)) for name, tensor in load_file(TEST / "model.safetensors").items())
    child.call("load_weights", dir=str(saved))
    assert sample()["tokens"] != tokens
    child.call("load", dir=str(saved))

    started = next(json.loads(line) for line in child.log.read_text().splitlines() if re.search('"rank started"', line))
    os.kill(started["pid"], signal.SIGSTOP)  # so that rank 0 waits for it in the update
    child.send("update", **update)
    os.kill(started["pid"], signal.SIGKILL)
    while (frame := child.reader.read()) is not None:
        assert frame["kind"] != "result", "the kill came too late"
    assert child.process.wait(120) != 0
