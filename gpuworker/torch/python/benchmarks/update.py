"""Share of the matrix rate that an update reaches: random Qwen2.5-Coder-1.5B shape, bf16, packed completions.

Counts 6 operations per parameter and token, and attention's; recomputation is not counted as work. With --liger it then
computes the layers with the kernels of the package liger-kernel in place of compiled ones, and compares its fused loss.
Usage: python benchmarks/update.py [repetitions] [--liger]
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from shapes import random_model

from codea1_torch import layers, losses
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


def liger_layers() -> dict[str, Callable[..., object]]:
    """Return the two parts of a layer of Qwen2 or Llama with Liger's norm, rotation and activation."""
    from liger_kernel.ops.rms_norm import LigerRMSNormFunction as Norm
    from liger_kernel.ops.rope import LigerRopeFunction as Rope
    from liger_kernel.ops.swiglu import LigerSiLUMulFunction as SiLUMul

    def before(x, norm, qkv, bias, q_norm, k_norm, cos, sin, heads, kv_heads, eps):  # type: ignore[no-untyped-def]
        y = F.linear(Norm.apply(x, norm, eps), qkv, bias)
        q, k, v = y.view(len(x), -1, 2 * cos.shape[-1]).split((heads, kv_heads, kv_heads), 1)
        both = [torch.cat((t, t), -1).view(1, len(x), -1) for t in (cos, sin)]
        q, k = Rope.apply(q.transpose(0, 1)[None], k.transpose(0, 1)[None], *both)
        return q[0].transpose(0, 1).contiguous(), k[0].transpose(0, 1).contiguous(), v.contiguous()

    def after(x, attended, out, bias, norm, gate_up, down, eps):  # type: ignore[no-untyped-def]
        x = x + F.linear(attended, out, bias)
        gate, up = F.linear(Norm.apply(x, norm, eps), gate_up).chunk(2, -1)
        return x + F.linear(SiLUMul.apply(gate, up), down)

    return {"_before": before, "_after": after}


def compare_losses(repetitions: int) -> None:
    """Print time and memory of the loss of supervised training, ours and Liger's."""
    from liger_kernel.ops.fused_linear_cross_entropy import LigerFusedLinearCrossEntropyFunction as Fused

    rows, width, vocabulary = 16_384, 1_536, 151_936
    hidden = torch.randn(rows, width, device="cuda", dtype=torch.bfloat16)
    head = (0.02 * torch.randn(vocabulary, width, device="cuda")).bfloat16().requires_grad_()
    tokens = torch.randint(vocabulary, (rows,), device="cuda")
    zero = torch.zeros(rows, device="cuda")

    def ours() -> float:
        sums = losses.Sums.zero(hidden.device)
        targets = losses.Targets(tokens, zero, None, zero)
        gradient = torch.zeros_like(head, dtype=torch.float32)
        losses.loss_gradients(hidden, head.detach(), targets, UpdateConfig(loss="sft"), 1 / rows, gradient, sums)
        return float(sums.loss) / rows

    def fused() -> float:
        head.grad = None
        loss = Fused.apply(hidden.detach().requires_grad_(), head, tokens)
        loss = loss[0] if isinstance(loss, tuple) else loss
        loss.backward()
        return float(loss)

    for name, work in (("codea1", ours), ("liger", fused)):
        work()
        torch.cuda.reset_peak_memory_stats()
        held, times, loss = torch.cuda.memory_allocated(), [], 0.0
        for _ in range(repetitions):
            torch.cuda.synchronize()
            began = time.perf_counter()
            loss = work()
            times.append(time.perf_counter() - began)
        memory = (torch.cuda.max_memory_allocated() - held) / 2**30
        print(f"loss of {rows:,} tokens, {name}: {statistics.median(times):.3f} s, {memory:.1f} GiB, {loss:.5f}", flush=True)


def measure(repetitions: int, rate: float, name: str) -> None:
    """Print the rates of updates with equal and with different lengths."""
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
                print(f"{name}: first update: {time.perf_counter() - began:.1f} s", flush=True)
        s = statistics.median(times)
        print(
            f"{name}: {len(sequences)} sequences of {low} to {high}: {tokens / s:,.0f} tokens/s, {work / s / rate:.1%} of the matrix rate, "
            f"{learner.micro_tokens} tokens a pass, {torch.cuda.max_memory_allocated() / 2**30:.0f} GiB, loss {stats.loss:.4f}",
            flush=True,
        )


def main() -> None:
    """Print the table."""
    numbers = [int(a) for a in sys.argv[1:] if a.isdecimal()]
    repetitions = numbers[0] if numbers else 3
    rate = matrix_rate()
    print(f"{torch.cuda.get_device_name()}: {rate / 1e12:.0f} TFLOP/s", flush=True)
    measure(repetitions, rate, "compiled")
    if "--liger" in sys.argv:
        torch.cuda.empty_cache()
        parts = liger_layers()
        layers._compiled = lambda function: parts[function.__name__]  # type: ignore[assignment]
        measure(repetitions, rate, "liger")
        compare_losses(repetitions)


if __name__ == "__main__":
    main()
