"""Two GPUs against one: an update, its result in float32, weights by broadcast, and sampling by a replica on each.

Random weights of Qwen2.5-Coder-1.5B's shape in bfloat16; the update has 256 packed sequences of 200 to 2,000 tokens.
Each figure is printed when it is known, and all are printed at the end.
Usage: python benchmarks/gpus.py [--small --device cpu] [--gpus N] [--repetitions N] [--out FILE]
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
import torch.distributed as dist
from shapes import arguments, device_name, random_model, report, wait

from codea1_torch.learning import Learner, Sequence, UpdateConfig
from codea1_torch.model import Config, Model
from codea1_torch.ranks import Ranks
from codea1_torch.sampling import Params, Request, Sampler
from codea1_torch.sharding import ShardedLearner

EQUAL = {
    "architectures": ["Qwen2ForCausalLM"],
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000,
    "vocab_size": 4096,
    "tie_word_embeddings": True,
}


class Bench:
    """The measurements of one rank. Rank 0 prints."""

    def __init__(self, ranks: Ranks, flags: argparse.Namespace, device: str) -> None:
        self.ranks = ranks
        self.device = device
        self.small: bool = flags.small
        self.repetitions: int = flags.repetitions
        self.found: dict[str, object] = {"device": device_name(device), "gpus": ranks.size}

    def say(self, name: str, value: object) -> None:
        self.found[name] = value
        if self.ranks.rank == 0:
            print(f"{name}: {value}", flush=True)

    def time(self, work: Callable[[], object], *, alone: bool = False) -> float:
        """Return the median seconds of a call on all ranks, or on rank 0 alone, after one that is not counted."""
        times = []
        for _ in range(self.repetitions + 1):
            wait(self.device)
            self.ranks.gather(None)
            began = time.perf_counter()
            if not alone or self.ranks.rank == 0:
                work()
                wait(self.device)
            self.ranks.gather(None)
            times.append(time.perf_counter() - began)
        self.say_first(times[0])
        return statistics.median(times[1:])

    def say_first(self, seconds: float) -> None:
        if self.ranks.rank == 0:
            print(f"  first call: {seconds:.1f} s", flush=True)

    def sequences(self, model: Model, count: int, longest: int) -> list[Sequence]:
        rng = random.Random(1)
        out = []
        for _ in range(count):
            n = rng.randint(longest // 10, longest)
            text = [rng.randrange(model.config.vocabulary) for _ in range(n)]
            out.append(Sequence(text[:16], text[16:], [-8.0] * (n - 16), None, rng.gauss(0, 1)))
        return out

    def equal(self) -> None:
        """Compare two updates in float32 on one GPU and on all."""
        # With AdamW's usual epsilon, a gradient that is only rounding noise moves a weight as far as any other.
        config = UpdateConfig(learning_rate=1e-3, weight_decay=0.1, epsilon=1e-4)

        def trained(learner: Callable[[Model], Learner]) -> tuple[list[float], Model]:
            model = Model(Config.parse(EQUAL), device=self.device, dtype=torch.float32)
            model.initialize(3)
            one = learner(model)
            one.micro_tokens = 256 if self.small else 4096
            found = one.log_probs(one.model, data, 1.0)
            batch = [replace(s, old_probs=p) for s, p in zip(data, found, strict=True)]
            losses = [one.update(batch, config).loss for _ in range(2)]
            one.give_weights(model)
            return losses, model

        count, longest = (6, 200) if self.small else (24, 1000)
        data = self.sequences(Model(Config.parse(EQUAL), device="meta", dtype=torch.float32), count, longest)
        losses, model = trained(Learner)
        shared, other = trained(lambda source: ShardedLearner(source, self.ranks, self.device))
        self.say("float32, greatest difference of a loss", max(abs(a - b) for a, b in zip(losses, shared, strict=True)))
        weights = zip(model.parameters(), other.parameters(), strict=True)
        self.say("float32, greatest difference of a weight", max(float((a - b).detach().abs().max()) for a, b in weights))

    def update(self) -> None:
        """Time an update on one GPU and on all."""
        model = random_model(small=self.small, device=self.device)
        data = self.sequences(model, 16 if self.small else 256, 200 if self.small else 2000)
        tokens = sum(len(s.prompt) + len(s.tokens) for s in data)
        config = UpdateConfig(learning_rate=1e-9)
        if self.ranks.rank == 0:
            learner = Learner(model)
        alone = self.time(lambda: learner.update(data, config), alone=True)
        self.say("update on one GPU, tokens/s", round(tokens / alone))
        if self.ranks.rank == 0:
            del learner
        if self.device != "cpu":
            torch.cuda.empty_cache()
        sharded = ShardedLearner(model, self.ranks, self.device)
        for holds in (sharded.holds, not sharded.holds):
            sharded.holds = holds
            name = "update on all GPUs, weights " + ("held for an update" if holds else "gathered for each pass")
            seconds = self.time(lambda: sharded.update(data, config))
            self.say(f"{name}, tokens/s", round(tokens / seconds))
            self.say(f"{name}, times one GPU", round(alone / seconds, 3))
        if self.device != "cpu":
            self.say("greatest memory of rank 0, GiB", round(torch.cuda.max_memory_allocated() / 2**30, 1))
        self.say("gather of the weights for sampling, s", round(self.time(lambda: sharded.give_weights(model)), 3))

    def broadcast(self) -> None:
        """Time the weights of rank 0 on their way to the other GPUs."""
        model = random_model(seed=self.ranks.rank, small=self.small, device=self.device)

        def send() -> None:
            for parameter in model.parameters():
                dist.broadcast(parameter.detach(), 0)

        seconds = self.time(send)
        size = sum(p.nbytes for p in model.parameters())
        self.say("broadcast of the weights, s", round(seconds, 4))
        self.say("broadcast of the weights, GB/s", round(size / seconds / 1e9, 1))
        sums = tuple(float(p.detach().double().sum()) for p in model.parameters())
        self.say("the weights are the same", len(set(self.ranks.gather(sums))) == 1)

    def sample(self) -> None:
        """Time the same requests on one replica, and divided among a replica on each GPU."""
        model = random_model(small=self.small, device=self.device)
        rng = random.Random(0)
        each, tokens, prompt = (1, 4, 8) if self.small else (128, 256, 512)
        vocabulary = model.config.vocabulary
        requests = [
            Request([rng.randrange(vocabulary) for _ in range(prompt)], [rng.getrandbits(63) for _ in range(8)])
            for _ in range(each * self.ranks.size)
        ]
        sampler = Sampler(model, [], slots=None if self.small else 1024)
        own = requests[self.ranks.rank :: self.ranks.size]
        params = Params(1.0, 1.0, 0, tokens)
        alone = self.time(lambda: sampler.sample(requests, params), alone=True)
        self.say("sampling by one replica, tokens/s", round(8 * len(requests) * tokens / alone))
        together = self.time(lambda: sampler.sample(own, params))
        self.say("sampling by a replica on each GPU, tokens/s", round(8 * len(requests) * tokens / together))
        self.say("sampling by a replica on each GPU, times one", round(alone / together, 3))


def work(rank: int, flags: argparse.Namespace, store: Path) -> None:
    device = "cpu" if flags.device == "cpu" else f"cuda:{rank}"
    bench = Bench(Ranks.join(rank, flags.gpus, store, device), flags, device)
    for part in (bench.equal, bench.broadcast, bench.update, bench.sample):
        part()
    if rank == 0:
        report(bench.found, flags.out)
    bench.ranks.gather(None)
    sys.stdout.flush()
    os._exit(0)  # threads of gloo may end after the interpreter


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--out", type=Path)
    flags = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as directory:
        ranks = [context.Process(target=work, args=(rank, flags, Path(directory) / "store")) for rank in range(flags.gpus)]
        for rank in ranks:
            rank.start()
        while any(rank.is_alive() for rank in ranks):
            for rank in ranks:
                rank.join(0.2)
            if any(rank.exitcode for rank in ranks):  # the others would wait for it for ever
                for rank in ranks:
                    rank.kill()
    if any(rank.exitcode for rank in ranks):
        raise SystemExit("a rank failed")


if __name__ == "__main__":
    main()
