"""The builtin sampler beside vLLM on a GPU: tokens a second, log-probs, and the hand-over of weights.

Both sample the same requests from a random Qwen2.5-Coder-1.5B shape in one run: prompts of 512 tokens, 8 completions each, with the
log-prob of each token. The trainer then computes the log-probs of the completions of both. The part alone is vLLM's LLM.generate with
the same arguments. In the part paired, it and a child of the product, with its frames, sample the same loads in turn. All parts take
about 8 minutes.
Usage: python benchmarks/samplers.py [--parts PARTS] [--repetitions N] [--tensor-parallel N] [--data-parallel N] [--out FILE]
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import protocol
import shapes
import torch

from codea1_torch.engine import Engine, Options
from codea1_torch.learning import Learner, Sequence, UpdateConfig
from codea1_torch.model import Model
from codea1_torch.sampling import Completion, Params, Request
from codea1_torch.vllm_sampling import VllmOptions, VllmSampler, engine_arguments, sampling_arguments

PARTS = ("alone", "vllm", "handover", "builtin", "paired")
Rows = list[list[Completion]]
Sample = Callable[[list[Request], Params], int]  # returns the number of tokens


def requests(n: int, seed: int, limits: int | None = None) -> list[Request]:
    """Return requests for n completions, of log-normal lengths up to limits if it is given."""
    rng = random.Random(seed)

    def length(most: int) -> int:
        while not 30 <= (n := int(math.exp(rng.gauss(math.log(220), 0.8)))) <= most:
            pass
        return n

    out = []
    for _ in range(n // 8):
        lengths = None if limits is None else [length(limits) for _ in range(8)]
        out.append(Request([rng.randrange(1000, 150000) for _ in range(512)], [rng.getrandbits(63) for _ in range(8)], lengths))
    return out


# Name, completions, tokens, and the longest where lengths differ.
LOADS = (("256 of 256", 256, 256, None), ("1,024 of 256", 1024, 256, None), ("2,048 of 30 to 1,024, 1,024 at a time", 2048, 1024, 1024))


def rates(sample: Sample, repetitions: int) -> dict[str, float]:
    """Return the median rate of each load, and the only one of the longest load."""
    sample(requests(64, 0), Params(1.0, 1.0, 0, 64))
    found = {}
    for name, n, tokens, longest in LOADS:
        seen = []
        for i in range(1 if longest else repetitions):
            load = requests(n, 1 + i, longest)
            began = time.perf_counter()
            total = sample(load, Params(1.0, 1.0, 0, tokens))
            seen.append(total / (time.perf_counter() - began))
        found[name] = round(statistics.median(seen))
        print(f"  {name}: {', '.join(f'{rate:,.0f}' for rate in seen)} tokens/s", flush=True)
    return found


def open_engine(directory: Path, vllm: VllmOptions | None) -> Engine:
    engine = Engine(directory, "cuda", options=Options(vllm=vllm))
    engine.end_tokens = []  # so that each completion has its length
    return engine


def through(engine: Engine) -> Sample:
    def sample(load: list[Request], params: Params) -> int:
        rows = engine.sample(load, params, lambda: False, lambda done: None)
        return sum(len(c.tokens) for row in rows for c in row)

    return sample


def compare(engine: Engine, name: str, load: list[Request], rows: Rows, vllm: VllmSampler | None = None) -> dict[str, Any]:
    """Return the differences of log-probs of completions: as sampled, of the trainer, and of vLLM where it is given."""
    batch = [Sequence(r.prompt, c.tokens, None, None, 0.0) for r, row in zip(load, rows, strict=True) for c in row]
    have = {"sampled": [p for row in rows for c in row for p in c.log_probs]}
    if vllm is not None:
        have["vLLM"] = scored(vllm, batch)
    learner = engine._ready_learner()
    have["trainer"] = [p for row in learner.log_probs(engine._model, batch, 1.0) for p in row]
    exact = Model(engine.config, device="cuda", dtype=torch.float32)
    exact.load_state_dict(engine._model.state_dict())
    have["float32"] = [p for row in Learner(exact).log_probs(exact, batch, 1.0) for p in row]
    found: dict[str, Any] = {"tokens": len(have["sampled"])}
    names = list(have)
    for i, a in enumerate(names):
        for b in names[i + 1 :]:
            gaps = [abs(x - y) for x, y in zip(have[a], have[b], strict=True)]
            ratio = statistics.fmean(math.exp(y - x) for x, y in zip(have[a], have[b], strict=True))
            found[f"{a} and {b}"] = {"mean": round(statistics.fmean(gaps), 5), "largest": round(max(gaps), 4), "ratio": round(ratio, 5)}
            print(f"  {name}, {a} and {b}: {found[f'{a} and {b}']}", flush=True)
    return found


def scored(vllm: VllmSampler, batch: list[Sequence]) -> list[float]:
    """Return vLLM's log-probs of tokens that another sampler chose, from a prefill."""
    from vllm import SamplingParams

    async def one(number: int, s: Sequence) -> list[float]:
        params = SamplingParams(temperature=1.0, max_tokens=1, prompt_logprobs=0, detokenize=False)
        prompt = s.prompt + s.tokens
        async for output in vllm._engine.generate({"prompt_token_ids": prompt}, params, request_id=f"score-{number}"):
            last = output
        return [last.prompt_logprobs[i][prompt[i]].logprob for i in range(len(s.prompt), len(prompt))]

    async def every() -> list[list[float]]:
        return [await one(i, s) for i, s in enumerate(batch)]

    return [p for row in vllm._run(every()) for p in row]


def handover(engine: Engine, directory: Path) -> dict[str, Any]:
    """Return the seconds of vLLM's sleep and of new weights, and that it samples from them."""
    vllm = engine._vllm
    assert vllm is not None
    load, params = requests(64, 9), Params(1.0, 1.0, 0, 64)
    found: dict[str, Any] = {}

    def timed(name: str, work: Callable[[], object]) -> None:
        torch.cuda.synchronize()
        began = time.perf_counter()
        work()
        torch.cuda.synchronize()
        found.setdefault(name, []).append(round(time.perf_counter() - began, 3))

    for _ in range(3):
        vllm.weights_changed()
        timed("new weights, awake", lambda: vllm._make_ready(params, lambda: False))
    for seed in (5, 6, 7):
        before = vllm._free()
        timed("sleep", vllm.release)
        found["GiB free awake and asleep"] = [round(before / 2**30, 1), round(vllm._free() / 2**30, 1)]
        engine._model.initialize(seed)
        timed("wake with new weights", lambda: vllm._make_ready(params, lambda: False))
    print(f"  {found}", flush=True)
    rows = engine.sample(load, params, lambda: False, lambda done: None)
    found["log-probs of the new weights"] = compare(engine, "new weights", load, rows)
    one = [Sequence(load[0].prompt, rows[0][0].tokens, rows[0][0].log_probs, None, 1.0)]
    engine.update(one, UpdateConfig(learning_rate=1e-6), lambda: False)
    saved = directory / "saved"
    saved.mkdir()
    engine.save(saved)
    engine.load_weights(saved)
    rows = engine.sample(load, params, lambda: False, lambda done: None)
    found["log-probs after an update"] = compare(engine, "after an update", load, rows)
    return found


@contextmanager
def worker(directory: Path) -> Iterator[Sample]:
    """Give the sampling of a child of the product, with its frames."""
    with tempfile.TemporaryDirectory() as name:
        parent = protocol.Parent(protocol.__file__, str(Path(name, "times")))
        vllm = {"sampler": "vllm", "vllm_memory": 0.3, "vllm_tensor_parallel": 1, "vllm_data_parallel": 1}
        parent.call("open", dir=str(directory), device="cuda", **{**protocol.OPEN, **vllm})

        def sample(load: list[Request], params: Params) -> int:
            answer = parent.call(
                "sample",
                prompts=protocol.pack_ragged("i", [r.prompt for r in load]),
                seeds=protocol.pack_ragged("Q", [r.seeds for r in load]),
                temperature=params.temperature,
                top_p=params.top_p,
                top_k=params.top_k,
                max_tokens=params.max_tokens,
            )
            return len(answer["log_probs"]) // 4

        try:
            yield sample
        finally:
            parent.close()


@contextmanager
def alone(directory: Path) -> Iterator[Sample]:
    """Give vLLM's own LLM.generate."""
    from vllm import LLM, SamplingParams

    arguments = engine_arguments(directory, "bfloat16", VllmOptions(), False)
    for ours in ("weight_transfer_config", "enable_sleep_mode"):
        del arguments[ours]
    llm = LLM(**arguments)

    def sample(load: list[Request], params: Params) -> int:
        prompts, each = [], []
        for request in load:
            for a in sampling_arguments(request, params, []):
                prompts.append({"prompt_token_ids": request.prompt})
                each.append(SamplingParams(**a))
        outputs = llm.generate(prompts, each, use_tqdm=False)  # type: ignore[arg-type]
        return sum(len(output.outputs[0].token_ids) for output in outputs)

    try:
        yield sample
    finally:
        llm.llm_engine.engine_core.shutdown()


def alone_rates(directory: Path, repetitions: int) -> dict[str, float]:
    """Return the rates of vLLM alone."""
    with alone(directory) as sample:
        return rates(sample, repetitions)


def paired(directory: Path, repetitions: int) -> dict[str, Any]:
    """Return the rates of a child and of vLLM alone, which sample the same loads in turn, and the median of their ratios."""
    found: dict[str, Any] = {}
    with alone(directory) as own, worker(directory) as ours:
        both = {"alone": own, "worker": ours}
        for sample in both.values():
            sample(requests(64, 0), Params(1.0, 1.0, 0, 64))
        for name, n, tokens, _ in LOADS[:2]:
            seen: dict[str, list[float]] = {"alone": [], "worker": []}
            for i in range(repetitions + 1):  # the first is not counted
                load = requests(n, 1 + i)
                for who in sorted(both, reverse=i % 2 == 0):
                    began = time.perf_counter()
                    total = both[who](load, Params(1.0, 1.0, 0, tokens))
                    seen[who].append(total / (time.perf_counter() - began))
            ratios = [b / a for a, b in zip(seen["alone"][1:], seen["worker"][1:], strict=True)]
            found[name] = {who: [round(rate) for rate in rates[1:]] for who, rates in seen.items()}
            found[name]["worker over alone, median"] = round(statistics.median(ratios), 3)
            print(f"  {name}: {found[name]}", flush=True)
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default=",".join(PARTS), help="with commas between them")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--tensor-parallel", type=int, default=1, help="GPUs of each replica of vLLM, in the part vllm")
    parser.add_argument("--data-parallel", type=int, default=1, help="replicas of vLLM, in the part vllm")
    parser.add_argument("--out", type=Path, help="JSON file")
    flags = parser.parse_args()
    found: dict[str, object] = {"device": shapes.device_name("cuda")}
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name, "model")
        directory.mkdir()
        shapes.write(shapes.random_model(), False, directory)
        state: dict[str, Engine] = {}

        def vllm() -> object:
            parallel = VllmOptions(tensor_parallel=flags.tensor_parallel, data_parallel=flags.data_parallel)
            state["vllm"] = engine = open_engine(directory, parallel)
            load = requests(64, 9)
            began = time.perf_counter()
            rows = engine.sample(load, Params(1.0, 1.0, 0, 256), lambda: False, lambda done: None)
            print(f"  started in {time.perf_counter() - began:.1f} s", flush=True)
            out: dict[str, object] = {"rates": rates(through(engine), flags.repetitions)}
            out["log-probs"] = compare(engine, "vLLM's tokens", load, rows)
            return out

        def builtin() -> object:
            if "vllm" in state:
                state["vllm"]._release()
            engine = open_engine(directory, None)
            load = requests(64, 9)
            rows = engine.sample(load, Params(1.0, 1.0, 0, 256), lambda: False, lambda done: None)
            engine._slots = 1024
            if engine._sampler is not None:
                engine._sampler.slots = 1024
            out: dict[str, object] = {"rates": rates(through(engine), flags.repetitions)}
            engine._release()
            scorer = None
            if "vllm" in state:
                scorer = state["vllm"]._vllm
                assert scorer is not None
                scorer.use(engine._model)
                scorer._make_ready(Params(1.0, 1.0, 0, 1), lambda: False)
            out["log-probs"] = compare(engine, "builtin's tokens", load, rows, scorer)
            if scorer is not None:
                scorer.release()
            return out

        parts: dict[str, Callable[[], object]] = {
            "vllm": vllm,
            "handover": lambda: handover(state["vllm"], Path(name)),
            "builtin": builtin,
            "alone": lambda: alone_rates(directory, flags.repetitions),
            "paired": lambda: paired(directory, flags.repetitions),
        }
        for part in flags.parts.split(","):
            print(f"{part}:", flush=True)
            began = time.perf_counter()
            try:
                found[part] = parts[part]()
            except Exception as error:  # the other parts go on
                traceback.print_exc()
                found[part] = f"{type(error).__name__}: {error}"
            print(f"  {part} took {time.perf_counter() - began:.0f} s", flush=True)
        shapes.report(found, flags.out)


if __name__ == "__main__":
    main()
