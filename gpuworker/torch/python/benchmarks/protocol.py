"""Share of a step that the child's protocol takes: frames, blobs, pipes and threads, on both sides.

Starts a real child, sends it the samplings, log-probs and updates of a step, and compares the time of each answer with
the time of the engine's call inside the child.
Usage: python benchmarks/protocol.py [--small] [--groups N] [--tokens N] [--out FILE]
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import shapes

from codea1_torch import protocol
from codea1_torch.protocol import Frame, pack, pack_ragged

_TIMED = ("encode_prompt", "sample", "log_probs", "update")


class Parent:
    """Requests to a child, with the seconds until their answers. program gets the arguments of the child."""

    def __init__(self, program: str, *arguments: str) -> None:
        requests, self._requests = os.pipe()
        self._answers, answers = os.pipe()

        def descriptors() -> None:
            for have, want in ((os.dup(requests), 3), (os.dup(answers), 4)):
                os.dup2(have, want)

        self._process = subprocess.Popen(
            [sys.executable, program, "--child", *arguments], close_fds=False, preexec_fn=descriptors, stdout=subprocess.DEVNULL
        )
        os.close(requests)
        os.close(answers)
        self._reader, self._writer, self._id = protocol.Reader(self._answers), protocol.Writer(self._requests), 0
        self.seconds = 0.0
        while self._read()["kind"] != "hello":
            pass

    def _read(self) -> Frame:
        frame = self._reader.read()
        if frame is None:
            raise SystemExit(f"the child ended: {self._process.wait()}")
        return frame

    def call(self, op: str, **fields: object) -> Frame:
        self._id += 1
        began = time.perf_counter()
        self._writer.write({"id": self._id, "op": op, **fields})
        while (answer := self._read())["kind"] not in ("result", "error"):
            pass
        self.seconds += time.perf_counter() - began
        if answer["kind"] == "error":
            raise SystemExit(f"{op}: {answer['message']}")
        return answer

    def close(self) -> None:
        os.close(self._requests)
        self._process.wait(60)


def child(times: Path) -> None:
    """Serve as the product's child does, and write the seconds inside of the engine's calls to a file."""
    from codea1_torch import engine
    from codea1_torch.serve import serve

    inside = open(times, "a", buffering=1)  # noqa: SIM115 (until the process ends)

    def wrapped(name: str) -> None:
        plain = getattr(engine.Engine, name)

        def call(*arguments: Any, **named: Any) -> Any:
            began = time.perf_counter()
            try:
                return plain(*arguments, **named)
            finally:
                inside.write(json.dumps([name, time.perf_counter() - began]) + "\n")

        setattr(engine.Engine, name, call)

    for name in _TIMED:
        wrapped(name)
    serve(3, 4)


def step(parent: Parent, groups: int, tokens: int, vocabulary: int, seed: int) -> None:
    """Sample, score and train on the completions of groups of eight."""
    rng = random.Random(seed)
    prompts = [[rng.randrange(vocabulary) for _ in range(min(512, 2 * tokens))] for _ in range(groups)]
    seeds = [[rng.getrandbits(63) for _ in range(8)] for _ in range(groups)]
    parent.call("encode", roles=["user"], contents=["Return xs."])
    answer = parent.call(
        "sample",
        prompts=pack_ragged("i", prompts),
        seeds=pack_ragged("Q", seeds),
        temperature=1.0,
        top_p=1.0,
        top_k=0,
        max_tokens=tokens,
    )
    lengths = answer["tokens"]["n"]
    count = 8 * groups
    sequences = {
        "prompts": pack_ragged("i", [p for p in prompts for _ in range(8)]),
        "tokens": answer["tokens"],
        "old_probs": {"n": lengths, "v": answer["log_probs"]},
        "weights": pack_ragged("f", [[]] * count),
        "advantages": pack("d", [rng.gauss(0, 1) for _ in range(count)]),
    }
    none = pack_ragged("f", [[]] * count)
    scored = parent.call("log_probs", policy="current", temperature=1.0, ref_probs=none, **sequences)
    parent.call("update", loss="ppo", ref_probs={"n": lengths, "v": scored["log_probs"]}, **PPO, **ADAM, **sequences)


def main() -> None:
    """Print the share."""
    if sys.argv[1:2] == ["--child"]:
        child(Path(sys.argv[2]))
        return
    parser = shapes.arguments(__doc__)
    parser.add_argument("--groups", type=int, default=32, help="prompts, with 8 completions each")
    parser.add_argument("--tokens", type=int, default=512, help="of a completion")
    parser.add_argument("--out", type=Path, help="JSON file")
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        directory, times = Path(name, "model"), Path(name, "times")
        directory.mkdir()
        shapes.write(shapes.random_model(small=flags.small, device=flags.device), flags.small, directory)
        parent = Parent(__file__, str(times))
        parent.call("open", dir=str(directory), device=flags.device, **OPEN)
        parent.call("load", dir=str(directory))
        vocabulary = 1000
        step(parent, flags.groups, flags.tokens, vocabulary, 0)  # compiles kernels, captures graphs
        times.write_text("")
        parent.seconds = 0.0
        step(parent, flags.groups, flags.tokens, vocabulary, 1)
        parent.close()
        inside: dict[str, float] = {}
        for line in times.read_text().splitlines():
            op, seconds = json.loads(line)
            inside[op] = inside.get(op, 0.0) + seconds
    engine = sum(inside.values())
    found: dict[str, object] = {
        "device": shapes.device_name(flags.device),
        "seconds": round(parent.seconds, 4),
        "in the engine": {op: round(s, 4) for op, s in inside.items()},
        "overhead": round(1 - engine / parent.seconds, 4),
    }
    shapes.report(found, flags.out)


OPEN: dict[str, object] = {
    "optimizer_state": "device",
    "reference": "device",
    "lora_rank": 0,
    "lora_alpha": 0.0,
    "lora_targets": [],
    "train_gpus": 1,
    "broadcast": 0,
    "halvings": 0,
    "sampler": "builtin",
}

PPO: dict[str, object] = {
    "clip_low": 0.2,
    "clip_high": 0.28,
    "dual_clip": 10.0,
    "log_ratio_clamp": 20.0,
    "kl_coef": 0.001,
    "temperature": 1.0,
    "learning_rate": 1e-6,
}
ADAM: dict[str, object] = {"weight_decay": 0.1, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "grad_clip": 1.0}

if __name__ == "__main__":
    main()
