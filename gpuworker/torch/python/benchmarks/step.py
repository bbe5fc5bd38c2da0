"""A whole step of two models on one device: how long its parts take, and the share of time that the device is busy.

The shape is the paper's on one GPU: 32 questions, 8 answers each, 8 suites per answer; both models are random
Qwen2.5-Coder-1.5B shapes. Each model has a child process of the product, which samples, scores with its reference, takes
an optimizer step and writes a checkpoint. As in a training, the Code LLM trains first; a model writes its checkpoint beside
the work of the other model, and samples only after that. A step lasts from its first sampling to that of the next step. It
is measured twice: with a profiler that records every kernel of both processes, and without one for the times. Copies from
and to the device do not count as busy. The program writes a JSON file and a timeline as SVG.
Usage: python benchmarks/step.py [--small] [--questions N] [--tokens N] [--dir DIR] [--out PREFIX]
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from array import array
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import accumulate, pairwise
from pathlib import Path

import shapes
import torch
from protocol import ADAM, OPEN, PPO, Parent
from torch.profiler import ProfilerActivity, profile

from codea1_torch.protocol import Frame, pack, pack_ragged, unpack
from codea1_torch.serve import Call, serve

ANSWERS = SUITES = 8
BINS = 400
ROLES = ("code", "test")

Interval = tuple[int, int]  # nanoseconds since the epoch


@dataclass
class Phase:
    """A part of the step."""

    role: str
    name: str
    began: int
    ended: int
    busy: float = 0.0


class Profiled:
    """Two requests of a child beside those of the product: the begin of a profile, and its result."""

    def __init__(self) -> None:
        self._profiler: profile | None = None

    def begin(self, frame: Frame, call: Call) -> Frame:
        activity = ProfilerActivity.CPU if frame["device"] == "cpu" else ProfilerActivity.CUDA
        self._profiler = profile(activities=[activity], acc_events=True)
        self._profiler.start()
        return {}

    def end(self, frame: Frame, call: Call) -> Frame:
        assert self._profiler is not None
        self._profiler.stop()
        on_gpu = frame["device"] != "cpu"
        peak = torch.cuda.max_memory_reserved() if on_gpu else 0
        found = busy_intervals(self._profiler, on_gpu)
        return {"busy": array("q", [at for interval in found for at in interval]).tobytes(), "peak": peak}


def child() -> None:
    """Serve as the product's child does, with the requests of a profile."""
    from codea1_torch.operations import Operations

    plain, profiled = Operations.handlers, Profiled()
    Operations.handlers = lambda self: {**plain(self), "profile": profiled.begin, "busy": profiled.end}  # type: ignore[method-assign]
    serve(3, 4)


@dataclass
class Completions:
    """The completions of a sampling, as they came in a frame."""

    lengths: list[int]
    tokens: bytes
    log_probs: bytes

    def of(self, chosen: Iterable[int]) -> tuple[Frame, Frame]:
        """Return tokens and log-probs of some completions."""
        ends = [0, *accumulate(self.lengths)]
        some = [(4 * ends[i], 4 * ends[i + 1]) for i in chosen]
        lengths = pack("i", [(b - a) // 4 for a, b in some])
        tokens, log_probs = (b"".join(values[a:b] for a, b in some) for values in (self.tokens, self.log_probs))
        return {"n": lengths, "v": tokens}, {"n": lengths, "v": log_probs}


class Step:
    """Two children and the parts of their step."""

    def __init__(self, small: bool, device: str, questions: int, tokens: int, alone: bool, directory: Path) -> None:
        self.phases: list[Phase] = []
        self._device, self._questions, self._tokens, self._directory = device, questions, tokens, directory
        self._saving: dict[str, Future[None]] = {}
        self._alone, self._pool = alone, ThreadPoolExecutor(len(ROLES))
        self.began = self.ended = 0
        self._children: dict[str, Parent] = {}
        for seed, role in enumerate(ROLES):
            start = directory / role
            start.mkdir()
            shapes.write(shapes.random_model(seed, small=small, device=device), small, start)
            if device != "cpu":
                torch.cuda.empty_cache()
            self._children[role] = Parent(__file__)
            self._call(role, "open", dir=str(start), device=device, **OPEN)
            self._call(role, "load", dir=str(start))
            self._call(role, "load_reference", dir=str(start))

    def _call(self, role: str, op: str, **fields: object) -> Frame:
        return self._children[role].call(op, **fields)

    @contextmanager
    def _phase(self, role: str, name: str) -> Iterator[None]:
        phase = Phase(role, name, time.time_ns(), sys.maxsize)
        self.phases.append(phase)
        yield
        phase.ended = time.time_ns()

    def run(self, seed: int) -> None:
        """Run a step. The chosen answer of a question is its first. Checkpoints of the step before may still be written."""
        self._wait("code")
        self.began = time.time_ns()
        rng = random.Random(seed)
        questions = [self._text(rng) for _ in range(self._questions)]
        answers = self._sample("code", questions, ANSWERS, rng)
        shown = [self._text(rng) for _ in range(self._questions * ANSWERS)]
        suites = self._sample("test", shown, SUITES, rng)
        self._train("code", questions, answers, range(self._questions * ANSWERS), rng)
        chosen = [q * ANSWERS * SUITES + n for q in range(self._questions) for n in range(SUITES)]
        self._train("test", shown[::ANSWERS], suites, chosen, rng)
        self._wait("code")
        self.ended = time.time_ns()

    def measured(self) -> list[Phase]:
        """Run a step behind another one, and return the parts in its time, in order."""
        self.run(1)
        inside = [p for p in self.phases if p.began < self.ended and p.ended > self.began]
        clipped = [Phase(p.role, p.name, max(p.began, self.began), min(p.ended, self.ended)) for p in inside]
        return sorted(clipped, key=lambda p: p.began)

    def begin_profile(self) -> None:
        """Begin to record both children. A checkpoint that is being written ends before."""
        for role in ROLES:
            self._wait(role)
            self._call(role, "profile", device=self._device)

    def end_profile(self) -> tuple[list[Interval], list[int]]:
        """Return when the device computed for a child, and the most bytes that each child had there."""
        found: list[Interval] = []
        peaks = []
        for role in ROLES:
            self._wait(role)
            answer = self._call(role, "busy", device=self._device)
            values = array("q", answer["busy"])
            found += zip(values[::2], values[1::2], strict=True)
            peaks.append(answer["peak"])
        return merged(found), peaks

    def close(self) -> None:
        for role in ROLES:
            self._wait(role)
            self._children[role].close()

    def _wait(self, role: str) -> None:
        """Wait until the checkpoint of a role is written."""
        if role in self._saving:
            self._saving.pop(role).result()

    def _text(self, rng: random.Random) -> list[int]:
        return [rng.randrange(1000) for _ in range(self._tokens)]

    def _sample(self, role: str, prompts: list[list[int]], count: int, rng: random.Random) -> Completions:
        seeds = [[rng.getrandbits(63) for _ in range(count)] for _ in prompts]
        fields = {"prompts": pack_ragged("i", prompts), "seeds": pack_ragged("Q", seeds)}
        self._wait(role)
        with self._phase(role, "sample"):
            answer = self._call(role, "sample", temperature=1.0, top_p=1.0, top_k=0, max_tokens=self._tokens, **fields)
        return Completions(unpack("i", answer["tokens"]["n"], "tokens"), answer["tokens"]["v"], answer["log_probs"])

    def _train(self, role: str, prompts: list[list[int]], rows: Completions, chosen: Iterable[int], rng: random.Random) -> None:
        """Train on chosen completions. Each prompt has as many of them."""
        indices = list(chosen)
        tokens, old = rows.of(indices)
        none = pack_ragged("f", [[]] * len(indices))
        fields: Frame = {
            "prompts": pack_ragged("i", [p for p in prompts for _ in range(len(indices) // len(prompts))]),
            "tokens": tokens,
            "old_probs": old,
            "weights": none,
            "advantages": pack("d", [rng.gauss(0, 1) for _ in indices]),
        }
        with self._phase(role, "reference"):
            reference = self._call(role, "log_probs", policy="reference", temperature=1.0, ref_probs=none, **fields)
        fields["ref_probs"] = {"n": tokens["n"], "v": reference["log_probs"]}
        with self._phase(role, "update"):
            self._call(role, "update", loss="ppo", **{**PPO, **ADAM, "learning_rate": 1e-9}, **fields)
        self._saving[role] = self._pool.submit(self._save, role)
        if self._alone:
            self._wait(role)

    def _save(self, role: str) -> None:
        name = tempfile.mkdtemp(dir=self._directory)
        with self._phase(role, "save"):
            self._call(role, "save", dir=name)
            shapes.sum_weights(Path(name))
        self._pool.submit(shutil.rmtree, name)  # nothing waits for a trainer that removes old checkpoints


def busy_intervals(profiler: profile, on_gpu: bool) -> list[Interval]:
    """Return when the device computed, merged and in order. On the CPU, when operators ran."""
    results = profiler.profiler
    assert results is not None and results.kineto_results is not None
    found = []
    for event in results.kineto_results.events():
        copied = event.name().startswith(("Memcpy HtoD", "Memcpy DtoH"))
        if (event.device_type() == torch.autograd.DeviceType.CUDA) == on_gpu and not copied and event.duration_ns() > 0:
            found.append((event.start_ns(), event.start_ns() + event.duration_ns()))
    return merged(found)


def merged(intervals: list[Interval]) -> list[Interval]:
    """Return the times that intervals cover, in order."""
    out: list[Interval] = []
    for first, last in sorted(intervals):
        if out and first <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], last))
        else:
            out.append((first, last))
    return out


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
    if sys.argv[1:2] == ["--child"]:
        child()
        return
    parser = shapes.arguments(__doc__)
    parser.add_argument("--questions", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=512, help="of a prompt, and at most of a completion")
    parser.add_argument("--alone", action="store_true", help="write a checkpoint while nothing else works")
    parser.add_argument("--dir", type=Path, help="directory for the checkpoints; default: that of temporary files")
    parser.add_argument("--out", type=Path, default=Path("step"), help="prefix of the JSON and SVG file")
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=flags.dir) as name:
        found, drawn = measure(flags, Path(name))
    flags.out.with_suffix(".svg").write_text(drawn, encoding="utf-8")
    shapes.report(found, flags.out.with_suffix(".json"))


def measure(flags: argparse.Namespace, directory: Path) -> tuple[dict[str, object], str]:
    """Return the figures and the picture."""
    step = Step(flags.small, flags.device, flags.questions, flags.tokens, flags.alone, directory)
    step.run(0)  # compiles kernels, captures graphs
    step.begin_profile()
    step.run(0)
    phases = step.measured()
    began, ended = step.began, step.ended
    busy, peaks = step.end_profile()
    print(f"with the profiler: {(ended - began) / 1e9:.2f} s, {share(busy, began, ended):.1%} busy", flush=True)
    step.run(0)
    plain = step.measured()
    seconds = (step.ended - step.began) / 1e9
    step.close()
    for phase in phases:
        phase.busy = share(busy, phase.began, phase.ended)
    edges = [began + (ended - began) * i // BINS for i in range(BINS + 1)]
    bins = [share(inside(busy, a, b), a, b) for a, b in pairwise(edges)]
    whole = share(busy, began, ended)
    device = shapes.device_name(flags.device)
    found: dict[str, object] = {
        "device": device,
        "questions": flags.questions,
        "tokens": flags.tokens,
        "seconds": round(seconds, 3),
        "peak GiB": [round(peak / 2**30, 1) for peak in peaks] if flags.device != "cpu" else None,
        "seconds with the profiler": round((ended - began) / 1e9, 3),
        "busy": round(whole, 4),
        "parts": [{"role": p.role, "name": p.name, "seconds": round((p.ended - p.began) / 1e9, 3)} for p in plain],
        "parts with the profiler": [asdict(p) for p in phases],
    }
    return found, picture(phases, bins, began, ended, f"{device}: {(ended - began) / 1e9:.1f} s, {whole:.1%} busy")


def inside(busy: list[Interval], began: int, ended: int) -> list[Interval]:
    """Return the intervals that overlap a time."""
    import bisect

    first = bisect.bisect_left(busy, (began, began)) - 1
    last = bisect.bisect_left(busy, (ended, ended))
    return busy[max(0, first) : last]


if __name__ == "__main__":
    main()
