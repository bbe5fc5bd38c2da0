"""A whole step of two models on one device: how long its parts take, and the share of time that the device is busy.

The shape is the paper's on one GPU: 32 questions, 8 answers each, 8 suites per answer; both models are random
Qwen2.5-Coder-1.5B shapes. Each model samples, scores with its reference, takes an optimizer step and writes a checkpoint.
As in a training, a model writes its checkpoint beside the work of the other model, and samples only after that. A step
lasts from its first sampling to that of the next step. It is measured twice: with a profiler that records every kernel,
and without one for the times. Copies from and to the device do not count as busy. The program writes a JSON file and a
timeline as SVG.
Usage: python benchmarks/step.py [--small] [--questions N] [--tokens N] [--lengths] [--out PREFIX]
"""

from __future__ import annotations

import math
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import shapes
import torch
from torch.profiler import ProfilerActivity, profile

from codea1_torch import checkpoint
from codea1_torch.learning import Learner, Sequence, UpdateConfig
from codea1_torch.sampling import Completion, Params, Request, Sampler

ANSWERS = SUITES = 8
BINS = 400

Interval = tuple[int, int]  # nanoseconds since the epoch


@dataclass
class Phase:
    """A part of the step."""

    role: str
    name: str
    began: int
    ended: int
    busy: float = 0.0


class Step:
    """Two models and the parts of their step."""

    def __init__(self, small: bool, device: str, questions: int, tokens: int, lengths: bool, alone: bool) -> None:
        self.phases: list[Phase] = []
        self._small, self._device, self._questions, self._tokens, self._lengths = small, device, questions, tokens, lengths
        self._models = {role: shapes.random_model(i, small=small, device=device) for i, role in enumerate(("code", "test"))}
        self._references = {role: shapes.random_model(i, small=small, device=device) for i, role in enumerate(("code", "test"))}
        self._samplers = {role: Sampler(m, []) for role, m in self._models.items()}
        self._learners = {role: Learner(m) for role, m in self._models.items()}
        self._saving: dict[str, Future[None]] = {}
        self._alone, self._pool = alone, ThreadPoolExecutor(len(self._models))
        self.began = self.ended = 0

    @contextmanager
    def _phase(self, role: str, name: str) -> Iterator[None]:
        if name != "save":
            shapes.wait(self._device)
        phase = Phase(role, name, time.time_ns(), sys.maxsize)
        self.phases.append(phase)
        yield
        if name != "save":
            shapes.wait(self._device)
        phase.ended = time.time_ns()

    def run(self, seed: int, directory: Path | None) -> None:
        """Run a step. The chosen answer of a question is its first. Checkpoints of the step before may still be written."""
        self._wait("code")
        self.began = time.time_ns()
        rng = random.Random(seed)
        questions = [self._text(rng) for _ in range(self._questions)]
        answers = self._sample("code", questions, ANSWERS, rng)
        suites = self._sample("test", [self._text(rng) for _ in range(self._questions * ANSWERS)], SUITES, rng)
        self._train("code", questions, answers, rng, directory)
        self._train("test", questions, suites[::ANSWERS], rng, directory)
        self._wait("code")
        self.ended = time.time_ns()

    def measured(self, directory: Path | None) -> list[Phase]:
        """Run a step behind another one, and return the parts in its time, in order."""
        self.run(1, directory)
        inside = [p for p in self.phases if p.began < self.ended and p.ended > self.began]
        clipped = [Phase(p.role, p.name, max(p.began, self.began), min(p.ended, self.ended)) for p in inside]
        return sorted(clipped, key=lambda p: p.began)

    def _wait(self, role: str) -> None:
        """Wait until the checkpoint of a role is written."""
        if role in self._saving:
            self._saving.pop(role).result()

    def _text(self, rng: random.Random) -> list[int]:
        return [rng.randrange(1000) for _ in range(self._tokens)]

    def _length(self, rng: random.Random) -> int:
        return max(1, min(self._tokens, int(math.exp(rng.gauss(math.log(self._tokens / 4), 0.8)))))

    def _sample(self, role: str, prompts: list[list[int]], count: int, rng: random.Random) -> list[list[Completion]]:
        requests = []
        for prompt in prompts:
            lengths = [self._length(rng) for _ in range(count)] if self._lengths else None
            requests.append(Request(prompt, [rng.getrandbits(63) for _ in range(count)], lengths))
        sampler = self._samplers[role]
        self._wait(role)
        with self._phase(role, "sample"):
            rows = sampler.sample(requests, Params(1.0, 1.0, 0, self._tokens))
            sampler.release()
        return rows

    def _train(self, role: str, prompts: list[list[int]], rows: list[list[Completion]], rng: random.Random, directory: Path | None) -> None:
        learner = self._learners[role]
        batch = [
            Sequence(prompt, c.tokens, c.log_probs, None, rng.gauss(0, 1)) for prompt, row in zip(prompts, rows, strict=True) for c in row
        ]
        with self._phase(role, "reference"):
            references = learner.log_probs(self._references[role], batch, 1.0)
        batch = [Sequence(s.prompt, s.tokens, s.old_probs, r, s.advantage) for s, r in zip(batch, references, strict=True)]
        with self._phase(role, "update"):
            learner.update(batch, UpdateConfig(kl_coef=0.001, learning_rate=1e-9))
        self._samplers[role].weights_changed()
        self._saving[role] = self._pool.submit(self._save, role, directory)
        if self._alone:
            self._wait(role)

    def _save(self, role: str, directory: Path | None) -> None:
        name = tempfile.mkdtemp(dir=directory)
        with self._phase(role, "save"):
            optimizer = self._learners[role].optimizer_tensors()
            checkpoint.write(Path(name), self._models[role].tensors(), optimizer, shapes.settings(self._small), {}, sums=True)
            shapes.sum_weights(Path(name))
        self._pool.submit(shutil.rmtree, name)  # nothing waits for a trainer that removes old checkpoints


def busy_intervals(profiler: profile, device: str) -> list[Interval]:
    """Return when the device computed, merged and in order. On the CPU, when operators ran."""
    results = profiler.profiler
    assert results is not None and results.kineto_results is not None
    on_gpu = device != "cpu"
    found = []
    for event in results.kineto_results.events():
        copied = event.name().startswith(("Memcpy HtoD", "Memcpy DtoH"))
        if (event.device_type() == torch.autograd.DeviceType.CUDA) == on_gpu and not copied and event.duration_ns() > 0:
            found.append((event.start_ns(), event.start_ns() + event.duration_ns()))
    merged: list[Interval] = []
    for first, last in sorted(found):
        if merged and first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return merged


def share(busy: list[Interval], began: int, ended: int) -> float:
    """Return the share of a time that intervals cover."""
    covered = sum(max(0, min(last, ended) - max(first, began)) for first, last in busy)
    return covered / max(1, ended - began)


def picture(phases: list[Phase], bins: list[float], began: int, ended: int, title: str) -> str:
    """Return an SVG with a row for each role, and the share of busy time below."""
    colours = {"sample": "#4477aa", "reference": "#ccbb44", "update": "#228833", "save": "#aa3377"}
    left, width, row = 70, 1000, 44
    rows = {"code": 40, "test": 40 + row}

    def x(at: int) -> float:
        return left + width * (at - began) / (ended - began)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 20} 290" font-family="sans-serif" font-size="12">']
    out.append(f'<rect width="100%" height="100%" fill="white"/><text x="{left}" y="20" font-size="14">{title}</text>')
    for role, y in rows.items():
        out.append(f'<text x="8" y="{y + 22}">{role}</text>')
    for p in phases:
        wide, seconds = x(p.ended) - x(p.began), (p.ended - p.began) / 1e9
        label = f"{p.role} {p.name}: {seconds:.2f} s, {p.busy:.1%} busy"
        out.append(
            f'<rect x="{x(p.began):.1f}" y="{rows[p.role]}" width="{max(wide, 1):.1f}" height="{row - 10}" fill="{colours[p.name]}">'
        )
        out.append(f"<title>{label}</title></rect>")
        if wide > 90:
            out.append(f'<text x="{x(p.began) + 4:.1f}" y="{rows[p.role] + 21}" fill="white">{p.name} {seconds:.1f} s</text>')
    bottom, high = 240, 90
    out.append(f'<text x="8" y="{bottom - high // 2}">busy</text>')
    for i, value in enumerate(bins):
        y, tall = bottom - high * value, high * value
        out.append(
            f'<rect x="{left + width * i / len(bins):.2f}" y="{y:.1f}" width="{width / len(bins):.2f}" height="{tall:.1f}" fill="#888"/>'
        )
    for i in range(11):
        at = left + width * i / 10
        out.append(f'<text x="{at:.0f}" y="{bottom + 16}" text-anchor="middle">{(ended - began) * i / 1e10:.1f} s</text>')
    for i, (name, colour) in enumerate(colours.items()):
        out.append(f'<rect x="{left + 130 * i}" y="268" width="12" height="12" fill="{colour}"/>')
        out.append(f'<text x="{left + 18 + 130 * i}" y="279">{name}</text>')
    return "\n".join([*out, "</svg>", ""])


def main() -> None:
    """Run the step, print the times and write the files."""
    parser = shapes.arguments(__doc__)
    parser.add_argument("--questions", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=512, help="of a prompt, and at most of a completion")
    parser.add_argument("--lengths", action="store_true", help="log-normal lengths of completions around a quarter of --tokens")
    parser.add_argument("--alone", action="store_true", help="write a checkpoint while nothing else works")
    parser.add_argument("--dir", type=Path, help="directory for the checkpoints; default: that of temporary files")
    parser.add_argument("--out", type=Path, default=Path("step"), help="prefix of the JSON and SVG file")
    flags = parser.parse_args()
    step = Step(flags.small, flags.device, flags.questions, flags.tokens, flags.lengths, flags.alone)
    step.run(0, flags.dir)  # compiles kernels, captures graphs
    plain = step.measured(flags.dir)
    seconds = (step.ended - step.began) / 1e9
    activity = ProfilerActivity.CPU if flags.device == "cpu" else ProfilerActivity.CUDA
    with profile(activities=[activity], acc_events=True) as profiler:
        phases = step.measured(flags.dir)
    busy = busy_intervals(profiler, flags.device)
    began, ended = step.began, step.ended
    for phase in phases:
        phase.busy = share(busy, phase.began, phase.ended)
    edges = [began + (ended - began) * i // BINS for i in range(BINS + 1)]
    bins = [share(inside(busy, a, b), a, b) for a, b in pairwise(edges)]
    whole = share(busy, began, ended)
    title = f"{shapes.device_name(flags.device)}: {seconds:.1f} s, {whole:.1%} busy"
    flags.out.with_suffix(".svg").write_text(picture(phases, bins, began, ended, title), encoding="utf-8")
    found: dict[str, object] = {
        "device": shapes.device_name(flags.device),
        "questions": flags.questions,
        "tokens": flags.tokens,
        "seconds": round(seconds, 3),
        "peak GiB": round(torch.cuda.max_memory_reserved() / 2**30, 1) if flags.device != "cpu" else None,
        "seconds with the profiler": round((ended - began) / 1e9, 3),
        "busy": round(whole, 4),
        "parts": [{"role": p.role, "name": p.name, "seconds": round((p.ended - p.began) / 1e9, 3)} for p in plain],
        "parts with the profiler": [asdict(p) for p in phases],
    }
    shapes.report(found, flags.out.with_suffix(".json"))


def inside(busy: list[Interval], began: int, ended: int) -> list[Interval]:
    """Return the intervals that overlap a time."""
    import bisect

    first = bisect.bisect_left(busy, (began, began)) - 1
    last = bisect.bisect_left(busy, (ended, ended))
    return busy[max(0, first) : last]


if __name__ == "__main__":
    main()
