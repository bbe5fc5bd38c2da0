"""A GPU that samples and a GPU that trains, in two processes: the weights between them, and a step at staleness 0 and 1.

Random weights of Qwen2.5-Coder-1.5B's shape in bfloat16. A step samples 768 completions of 256 tokens and trains on 256 of
them: with two models and TOPVAR, a run also trains on a part of its completions. No checkpoint is written and no program
runs. At staleness 1 the trainer computes the old log-probs again. Each figure is printed when it is known.
Usage: python benchmarks/apart.py [--small --device cpu] [--steps N]
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import sys
import tempfile
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from shapes import arguments, random_model, wait

from codea1_torch.broadcast import Offer, Receiver
from codea1_torch.learning import Learner, Sequence, UpdateConfig
from codea1_torch.sampling import Params, Request, Sampler

BEGAN = time.monotonic()


def say(*words: object) -> None:
    print(f"[{time.monotonic() - BEGAN:.1f}]", *words, flush=True)


def place(flags: argparse.Namespace, number: int) -> str:
    if flags.device == "cpu":
        return "cpu"
    import torch

    torch.cuda.set_device(number)
    return f"cuda:{number}"


def phases(flags: argparse.Namespace) -> list[tuple[int, int]]:
    """Return the staleness and the number of steps of each phase: a first one that compiles, and those that count."""
    return [(0, 2), (0, flags.steps), (1, flags.steps + 1)]


def train(flags: argparse.Namespace, folder: Path, batches: Any, announced: Any) -> None:
    device = place(flags, 0)
    model = random_model(1, small=flags.small, device=device)
    learner, offer, config = Learner(model), Offer(), UpdateConfig(learning_rate=1e-6)
    version = 0

    def publish() -> None:
        nonlocal version
        version += 1
        wait(device)
        began = time.monotonic()
        offer.take(folder, [version], model)
        say(f"version {version}: a copy for the sampler took {time.monotonic() - began:.3f} s")
        announced.put(version)

    for _ in range(2):  # a sampler asks for the first, so the second is offered
        publish()
    for stale, steps in phases(flags):
        ends, busy = [], []
        for _ in range(steps):
            batch: list[Sequence] = batches.get()
            began = time.monotonic()
            if stale:
                found = learner.log_probs(model, batch, 1.0)
                batch = [replace(s, old_probs=p) for s, p in zip(batch, found, strict=True)]
            learner.update(batch, config)
            wait(device)
            busy.append(time.monotonic() - began)
            publish()
            ends.append(time.monotonic())
        each = [b - a for a, b in pairwise(ends)]
        say(f"staleness {stale}: seconds a step {[round(s, 2) for s in each]}, of them in the trainer {[round(s, 2) for s in busy[1:]]}")
    batches.get()


def sample(flags: argparse.Namespace, folder: Path, batches: Any, announced: Any) -> None:
    device = place(flags, 0 if flags.device == "cpu" else 1)
    model = random_model(2, small=flags.small, device=device)
    sampler, receiver = Sampler(model, [], slots=None if flags.small else 768), Receiver()
    count, kept, tokens, prompt = (6, 2, 4, 8) if flags.small else (768, 256, 256, 64)
    rng = random.Random(0)
    requests = [
        Request([rng.randrange(model.config.vocabulary) for _ in range(prompt)], [rng.getrandbits(63) for _ in range(2)])
        for _ in range(count // 2)
    ]
    version = 0

    def follow(least: int) -> None:
        nonlocal version
        newest = version
        while newest < least or not announced.empty():
            newest = announced.get()
        if newest > version:
            began = time.monotonic()
            came = receiver.receive(folder, [newest], model)
            sampler.weights_changed()
            say(f"version {newest}: weights {'came' if came else 'did not come'} in {time.monotonic() - began:.4f} s")
            version = newest

    follow(1)
    follow(2)
    step = 2
    for stale, steps in phases(flags):
        for k in range(steps):
            follow(step + max(0, k - stale))
            began = time.monotonic()
            rows = sampler.sample(requests, Params(1.0, 1.0, 0, tokens))
            found = [
                Sequence(r.prompt, c.tokens, c.log_probs, None, rng.gauss(0, 1)) for r, row in zip(requests, rows, strict=True) for c in row
            ]
            say(f"staleness {stale}: sampling {time.monotonic() - began:.2f} s")
            batches.put(found[:kept])
        step += steps
        follow(step)
    batches.put(None)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--steps", type=int, default=3)
    flags = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    batches, announced = context.Queue(), context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        both = [context.Process(target=work, args=(flags, Path(folder), batches, announced)) for work in (train, sample)]
        for process in both:
            process.start()
        while all(process.is_alive() for process in both):
            for process in both:
                process.join(0.2)
        for process in both:
            process.join(10 if not any(p.exitcode for p in both) else 0)
            process.kill()
    sys.stdout.flush()
    os._exit(int(any(process.exitcode for process in both)))


if __name__ == "__main__":
    main()
