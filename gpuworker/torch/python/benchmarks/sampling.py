"""Tokens per second of the sampler: random Qwen2.5-Coder-1.5B shape, bf16, prompts of 512 tokens, 8 completions each.

Usage: python benchmarks/sampling.py [repetitions]
"""

from __future__ import annotations

import math
import random
import statistics
import sys
import time

import torch
from shapes import random_model

from codea1_torch.sampling import Params, Request, Sampler

rng = random.Random(0)


def prompts(n: int, limits: int | None = None) -> list[Request]:
    """Return requests for n completions, of log-normal lengths up to limits if it is given."""
    out = []
    for _ in range(n // 8):
        lengths = None if limits is None else [length(limits) for _ in range(8)]
        prompt = [rng.randrange(1000, 150000) for _ in range(512)]
        out.append(Request(prompt, [rng.getrandbits(63) for _ in range(8)], lengths))
    return out


def length(most: int) -> int:
    """Draw a log-normal length from 30 to most tokens."""
    while not 30 <= (n := int(math.exp(rng.gauss(math.log(220), 0.8)))) <= most:
        pass
    return n


def measure(name: str, sampler: Sampler, requests: list[Request], tokens: int, repetitions: int) -> None:
    """Print the median rate of several calls, after one that is not counted."""
    rates = []
    for i in range(repetitions + 1):
        torch.cuda.synchronize()
        began = time.perf_counter()
        out = sampler.sample(requests, Params(1.0, 1.0, 0, tokens))
        seconds = time.perf_counter() - began
        total = sum(len(c.tokens) for row in out for c in row)
        if i:
            rates.append(total / seconds)
    memory = torch.cuda.max_memory_allocated() / 2**30
    print(f"{name}: {statistics.median(rates):,.0f} tokens/s ({total} tokens, {repetitions} runs, {memory:.0f} GiB)", flush=True)


def main() -> None:
    """Print the table."""
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    print(torch.cuda.get_device_name(), torch.__version__, flush=True)
    sampler = Sampler(random_model(), [])
    for n in (256, 512, 1024):
        measure(f"{n} completions of 256", sampler, prompts(n), 256, repetitions)
    sampler.slots = 1024
    for n in (256, 2048):
        measure(f"{n} completions of log-normal length, 1,024 lanes", sampler, prompts(n, 1024), 1024, repetitions)


if __name__ == "__main__":
    main()
