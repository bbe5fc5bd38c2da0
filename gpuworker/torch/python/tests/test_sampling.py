"""Tests of the sampler."""

from __future__ import annotations

import math

import pytest
import torch
from conftest import ARCHITECTURES, model

from codea1_torch import choosing
from codea1_torch.cache import page_bytes
from codea1_torch.errors import BadRequest, Cancelled, PromptTooLong
from codea1_torch.learning import Learner, Sequence
from codea1_torch.model import Model
from codea1_torch.sampling import Completion, Params, Request, Sampler

ENDS = [7, 8, 9, 10]


def prompts() -> list[Request]:
    """Return prompts shorter and longer than a page, with different numbers of seeds."""
    return [
        Request([5], [1]),
        Request([3, 4] * 20, [1, 2]),
        Request([11] * 65, [3, 4, 5]),
        Request(list(range(12, 140)), [6, 7, 8, 9]),
        Request([17, 18], [10]),
    ]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("dtype,bound", [(torch.float32, 2e-5), (torch.bfloat16, 0.3)])
def test_log_probs_are_the_trainers(device: str, architecture: str, dtype: torch.dtype, bound: float) -> None:
    """The log-probs of sampled tokens are those that the learner computes."""
    if device == "cpu" and dtype != torch.float32:
        pytest.skip("bfloat16 is for GPUs")
    m = model(device, dtype, architecture)
    for temperature in (1.0, 0.6):
        out = Sampler(m, ENDS).sample(prompts(), Params(temperature, 1.0, 0, 90))
        sequences = [Sequence(r.prompt, c.tokens) for r, row in zip(prompts(), out, strict=True) for c in row]
        scored = Learner(m).log_probs(m, sequences, temperature)
        for ours, c in zip(scored, (c for row in out for c in row), strict=True):
            assert c.log_probs == pytest.approx(ours, abs=bound)


def test_finish(device: str) -> None:
    """A completion ends at the first end token or at the limit."""
    out = Sampler(model(device), ENDS).sample(prompts() * 4, Params(1.0, 1.0, 0, 90))
    finishes = set()
    for c in (c for row in out for c in row):
        finishes.add(c.finish)
        assert not set(c.tokens[:-1]) & set(ENDS)
        assert (c.tokens[-1] in ENDS) == (c.finish == "stop")
        assert len(c.tokens) == len(c.log_probs) <= 90
        assert c.finish == "stop" or len(c.tokens) == 90
        assert all(p <= 0 for p in c.log_probs)
    assert finishes == {"stop", "length"}


def test_completions_do_not_depend_on_their_neighbours(device: str) -> None:
    """In float32 a completion is the same alone, with others, and in any order, to the last bit."""
    sampler = Sampler(model(device), ENDS)
    params = Params(1.0, 1.0, 0, 40)
    together = sampler.sample(prompts(), params)
    backwards = sampler.sample(prompts()[::-1], params)[::-1]
    assert together == backwards
    for r, row in zip(prompts(), together, strict=True):
        for seed, c in zip(r.seeds, row, strict=True):
            assert sampler.sample([Request(r.prompt, [seed])], params) == [[c]]


def test_refill_and_little_memory(device: str) -> None:
    """Few lanes and few pages change nothing but the time."""
    m = model(device)
    params = Params(1.0, 1.0, 0, 70)
    requests = prompts() * 2
    sampler = Sampler(m, ENDS, slots=16)
    want = sampler.sample(requests, params)
    tight = Sampler(m, ENDS, slots=16, cache_bytes=9 * page_bytes(m.config, m.dtype))
    assert tight.sample(requests, params) == want
    none = Sampler(m, ENDS, cache_bytes=3 * page_bytes(m.config, m.dtype))
    with pytest.raises(torch.OutOfMemoryError, match="pages"):
        none.sample(requests, params)


def first_tokens(sampler: Sampler, prompt: list[int], params: Params, n: int) -> list[int]:
    """Return the first tokens of n completions."""
    return [c.tokens[0] for c in sampler.sample([Request(prompt, list(range(n)))], params)[0]]


@pytest.mark.parametrize(
    "params", [Params(1.0, 1.0, 0, 1), Params(0.5, 1.0, 0, 1), Params(1.0, 0.7, 0, 1), Params(1.0, 1.0, 20, 1), Params(1.0, 0.8, 30, 1)]
)
def test_distribution(device: str, params: Params) -> None:
    """Sampled tokens follow the filtered softmax: chi-square against exact probabilities."""
    m = model(device)
    prompt, n = [20, 21, 22], 6000
    exact = exact_probs(m, prompt, params)
    counts = torch.zeros(len(exact))
    for token in first_tokens(Sampler(m, ENDS, slots=100), prompt, params, n):
        counts[token] += 1
    assert counts[exact == 0].sum() == 0, "a token outside the filter was drawn"
    often = exact * n >= 5
    cells = torch.cat([counts[often], counts[~often].sum()[None]]).double()
    expected = torch.cat([exact[often], exact[~often].sum()[None]]) * n
    keep = expected > 0
    statistic = float(((cells - expected) ** 2 / expected)[keep].sum())
    freedom = int(keep.sum()) - 1
    # The seeds are fixed, so the statistic is too; 5 deviations of the normal approximation.
    assert statistic < freedom + 5 * math.sqrt(2 * freedom), (statistic, freedom)


def exact_probs(m: Model, prompt: list[int], params: Params) -> torch.Tensor:
    """Return the filtered distribution of the next token in float64."""
    tokens = range(m.config.vocabulary)
    scored = Learner(m).log_probs(m, [Sequence(prompt, [t]) for t in tokens], params.temperature)
    probs = torch.tensor(scored, dtype=torch.float64)[:, 0].exp()
    order = probs.argsort(descending=True)
    if params.top_k:
        order = order[: params.top_k]
    kept = probs[order]
    before = kept.cumsum(0) - kept
    order = order[before < params.top_p * kept.sum()]
    out = torch.zeros_like(probs)
    out[order] = probs[order] / probs[order].sum()
    return out


def test_greedy(device: str) -> None:
    """Top-k of 1 takes the most probable token."""
    m = model(device)
    prompt = [20, 21, 22]
    best = int(exact_probs(m, prompt, Params(1.0, 1.0, 0, 1)).argmax())
    assert set(first_tokens(Sampler(m, ENDS), prompt, Params(1.0, 1.0, 1, 1), 20)) == {best}


def test_kernel_chooses_as_the_reference() -> None:
    """The GPU's kernel draws the tokens that the plain implementation draws."""
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    generator = torch.Generator().manual_seed(2)
    logits = 3 * torch.randn(64, 5000, generator=generator)
    seeds = torch.randint(-(2**31), 2**31 - 1, (64, 2), generator=generator, dtype=torch.int32)
    positions = torch.randint(0, 4000, (64,), generator=generator)
    for top_p, top_k in ((1.0, 0), (0.9, 0), (1.0, 50), (0.9, 50)):
        arguments = [logits, seeds, positions, torch.tensor([0.8]), torch.tensor([top_p]), torch.tensor([top_k])]
        want = choosing.choose(*arguments, filtered=top_p < 1 or top_k > 0)
        got = choosing.choose(*(a.cuda() for a in arguments), filtered=top_p < 1 or top_k > 0)
        assert (got[0].cpu() == want[0]).float().mean() > 0.98  # rounding may turn a close race
        same = got[0].cpu() == want[0]
        torch.testing.assert_close(got[1].cpu()[same], want[1][same], atol=1e-5, rtol=0)


def test_noise_is_uniform() -> None:
    """Gumbel noise has the mean and variance of its distribution, over tokens, positions and seeds."""
    seeds = torch.tensor([choosing.split_seed(s) for s in range(100)], dtype=torch.int32)
    noise = torch.stack([choosing.gumbel(seeds, torch.full((100,), p), 100) for p in range(100)])
    assert float(noise.mean()) == pytest.approx(0.57722, abs=0.01)
    assert float(noise.var()) == pytest.approx(math.pi**2 / 6, rel=0.01)
    for axis in range(3):
        means = noise.mean(dim=[a for a in range(3) if a != axis])
        assert float(means.std()) == pytest.approx(math.sqrt(math.pi**2 / 6) / 100, rel=0.35)


def test_cancel(device: str) -> None:
    """A cancelled call raises, and the sampler can be used again."""
    sampler = Sampler(model(device), ENDS)
    params = Params(1.0, 1.0, 0, 90)
    calls = iter([False, False, True])
    with pytest.raises(Cancelled):
        sampler.sample(prompts(), params, cancelled=lambda: next(calls))
    seen: list[int] = []
    out = sampler.sample(prompts(), params, progress=seen.append)
    assert out == Sampler(model(device), ENDS).sample(prompts(), params)
    assert seen == sorted(seen) and seen[-1] == sum(len(c.tokens) for row in out for c in row)


@pytest.mark.parametrize(
    "request_,params,message",
    [
        (Request([], [1]), Params(1.0, 1.0, 0, 4), "empty"),
        (Request([300], [1]), Params(1.0, 1.0, 0, 4), "vocabulary"),
        (Request([1] * 500, [1]), Params(1.0, 1.0, 0, 40), "positions"),
        (Request([1], [1]), Params(0.0, 1.0, 0, 4), "temperature"),
        (Request([1], [1]), Params(math.nan, 1.0, 0, 4), "temperature"),
        (Request([1], [1]), Params(1.0, 0.0, 0, 4), "top_p"),
        (Request([1], [1]), Params(1.0, 1.0, 0, 0), "max_tokens"),
        (Request([1], [1], [9]), Params(1.0, 1.0, 0, 4), "limits"),
    ],
)
def test_bad_requests(request_: Request, params: Params, message: str) -> None:
    """A bad request is refused before anything is computed."""
    with pytest.raises((BadRequest, PromptTooLong), match=message):
        Sampler(model("cpu"), ENDS).sample([request_], params)


def test_a_request_without_seeds() -> None:
    """No seeds give no completions."""
    out = Sampler(model("cpu"), ENDS).sample([Request([1], []), Request([2], [1])], Params(1.0, 1.0, 0, 2))
    assert out[0] == [] and isinstance(out[1][0], Completion)
