"""Share of the matrix rate that an update reaches: random Qwen2.5-Coder-1.5B shape, bf16, packed completions.

Counts 6 operations per parameter and token, and attention's; recomputation is not counted as work.
Usage: python benchmarks/update.py [repetitions]
"""

from __future__ import annotations

import random
import statistics
import sys
import time

import torch
from shapes import random_model

from codea1_torch.learning import Learner, Sequence, UpdateConfig


def matrix_rate() -> float:
    """Return the operations per second of an 8,192 cube in bf16."""
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    b = torch.randn_like(a)
    for _ in range(5):
        a @ b
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(30):
        a @ b
    torch.cuda.synchronize()
    return 30 * 2 * 8192**3 / (time.perf_counter() - began)


def main() -> None:
    """Print the table."""
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    rate = matrix_rate()
    print(f"{torch.cuda.get_device_name()}: {rate / 1e12:.0f} TFLOP/s", flush=True)
    model = random_model()
    c = model.config
    rng = random.Random(0)
    learner = Learner(model)
    for low, high in ((1024, 1024), (200, 2000)):
        sequences = []
        while sum(len(s.prompt) + len(s.tokens) for s in sequences) < 120_000:
            n = rng.randint(low, high)
            text = [rng.randrange(1000, 150000) for _ in range(n)]
            sequences.append(Sequence(text[:16], text[16:], [-11.9] * (n - 16), None, rng.gauss(0, 1)))
        lengths = [len(s.prompt) + len(s.tokens) for s in sequences]
        tokens = sum(lengths)
        attention = sum(12 * c.layers * c.heads * c.head_size * n * n / 2 for n in lengths)
        work = 6 * sum(p.numel() for p in model.parameters()) * tokens + attention
        times = []
        for i in range(repetitions + 1):
            torch.cuda.synchronize()
            began = time.perf_counter()
            stats = learner.update(sequences, UpdateConfig(learning_rate=1e-9))
            torch.cuda.synchronize()
            if i:
                times.append(time.perf_counter() - began)
            else:
                print(f"first update: {time.perf_counter() - began:.1f} s", flush=True)
        s = statistics.median(times)
        print(
            f"{len(sequences)} sequences of {low} to {high}: {tokens / s:,.0f} tokens/s, {work / s / rate:.1%} of the matrix rate, "
            f"{learner.micro_tokens} tokens a pass, {torch.cuda.max_memory_allocated() / 2**30:.0f} GiB, loss {stats.loss:.4f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
