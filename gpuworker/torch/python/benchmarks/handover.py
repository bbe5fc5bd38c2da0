"""Seconds that a checkpoint takes from a trainer to a sampler by file: random Qwen2.5-Coder-1.5B shape.

Writes weights alone, and weights with the optimizer's state, with their sums, as a trainer does; then computes the sums of
the weights and reads them into a sampler's model, as a rollout does. The files of a read are in the page cache, as they are
behind a trainer on the same machine.
Usage: python benchmarks/handover.py [--small] [--dir DIR] [--repetitions N] [--out FILE]
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import shapes

from codea1_torch import checkpoint
from codea1_torch.learning import Learner, Sequence, UpdateConfig
from codea1_torch.model import Model


def timed(device: str, work: Callable[[], object]) -> float:
    """Return the seconds of work, to its end on the device."""
    shapes.wait(device)
    began = time.perf_counter()
    work()
    shapes.wait(device)
    return time.perf_counter() - began


def main() -> None:
    """Print the table."""
    parser = shapes.arguments(__doc__)
    parser.add_argument("--dir", type=Path, help="directory on the disk to measure; default: that of temporary files")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--out", type=Path, help="JSON file")
    flags = parser.parse_args()
    model = shapes.random_model(1, small=flags.small, device=flags.device)
    sampler = shapes.random_model(2, small=flags.small, device=flags.device)
    learner = Learner(model)
    text = [random.Random(0).randrange(1000) for _ in range(64)]
    learner.update([Sequence(text[:32], text[32:])], UpdateConfig(loss="sft", learning_rate=1e-9))
    config = shapes.settings(flags.small)
    seconds: dict[str, list[float]] = {"write weights": [], "write weights and optimizer": [], "sum weights": [], "read weights": []}
    size = 0
    for _ in range(flags.repetitions):
        with tempfile.TemporaryDirectory(dir=flags.dir) as name:
            alone, both = Path(name, "alone"), Path(name, "both")
            for directory, state, key in ((alone, None, "write weights"), (both, learner, "write weights and optimizer")):
                directory.mkdir()
                seconds[key].append(timed(flags.device, writing(directory, model, config, state)))
            seconds["sum weights"].append(timed(flags.device, lambda d=alone: shapes.sum_weights(d)))  # type: ignore[misc]
            seconds["read weights"].append(timed(flags.device, lambda d=alone: sampler.load_tensors(d)))  # type: ignore[misc]
            size = sum(path.stat().st_size for path in checkpoint.weight_files(alone))
    medians = {name: round(statistics.median(s), 3) for name, s in seconds.items()}
    total = round(medians["write weights"] + medians["sum weights"] + medians["read weights"], 3)
    shapes.report({"device": shapes.device_name(flags.device), "bytes": size, "seconds": medians, "weights handed over": total}, flags.out)


def writing(directory: Path, model: Model, config: dict[str, object], learner: Learner | None) -> Callable[[], None]:
    """Return the write of a checkpoint."""
    return lambda: checkpoint.write(directory, model.tensors(), learner.optimizer_tensors() if learner else None, config, {}, sums=True)


if __name__ == "__main__":
    main()
