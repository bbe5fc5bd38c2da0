"""Sampling of groups: prompts are prefilled once, finished lanes are refilled."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from .cache import PAGE, Cache, page_bytes
from .decoding import Decoder, Lane
from .errors import BadRequest, Cancelled, Diverged, PromptTooLong
from .model import Model

LOOK = 16  # steps between two looks of the host at a GPU
PREFILL = (512, 2048, 8192)  # padded sizes of a prefill in tokens
BUCKETS = (8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 640, 768, 896, 1024, 1280, 1536, 2048)
CPU_LANES = 16


@dataclass(frozen=True)
class Request:
    """len(seeds) completions of one prompt."""

    prompt: list[int]
    seeds: list[int]
    limits: list[int] | None = None  # tokens of each completion where fewer than max_tokens are wanted


@dataclass(frozen=True)
class Params:
    """Shared by all requests of a call. top_k 0 and top_p 1 keep every token."""

    temperature: float
    top_p: float
    top_k: int
    max_tokens: int


@dataclass(frozen=True)
class Completion:
    """A sampled response. tokens has the end token, log_probs is in nats."""

    tokens: list[int]
    log_probs: list[float]
    finish: str  # "stop" or "length"


@dataclass
class _Group:
    """A request with its prompt in the cache."""

    request: Request
    pages: list[int] = field(default_factory=list)
    waiting: int = 0  # completions that have not ended


@dataclass(frozen=True)
class _Job:
    group: int  # index of the request
    index: int  # of the completion in the request


class Sampler:
    """Samples completions from a model that others may update between calls.

    A completion depends only on the weights, its prompt, its seed and the
    parameters. In float32 this is exact, because every matrix product has the
    same shape; in bfloat16 the rounding depends on the size of the batch.
    """

    def __init__(self, model: Model, end_tokens: Sequence[int], *, slots: int | None = None, cache_bytes: int | None = None) -> None:
        """Create a sampler.

        slots is the largest number of completions at a time, by default as many
        as the memory allows. cache_bytes bounds keys and values, by default 80%
        of the free memory of the GPU.
        """
        self.model = model
        self.ends = sorted(set(end_tokens))
        self.slots = slots or (BUCKETS[-1] if model.device.type == "cuda" else CPU_LANES)
        self.cache_bytes = cache_bytes
        self.exact = model.dtype in (torch.float32, torch.float64)
        self._cache: Cache | None = None
        self._decoder: Decoder | None = None

    def release(self) -> None:
        """Free the cache and the graphs; the next call makes them again."""
        self._cache = self._decoder = None
        if self.model.device.type == "cuda":
            torch.cuda.empty_cache()

    def weights_changed(self) -> None:
        """Do nothing: no state of the sampler outlives a call but buffers and graphs, which use the weights in place."""

    def sample(
        self,
        requests: Sequence[Request],
        params: Params,
        *,
        cancelled: Callable[[], bool] = lambda: False,
        progress: Callable[[int], None] = lambda tokens: None,
    ) -> list[list[Completion]]:
        """Return a completion for each seed of each request, in their order.

        progress is called with the tokens of the completions that have ended. Raises
        BadRequest, PromptTooLong, Cancelled, Diverged or torch.OutOfMemoryError; the
        sampler can be used after each.
        """
        check(requests, params, self.model)
        if cancelled():
            raise Cancelled("cancelled")
        if not requests:
            return []
        jobs = [_Job(g, i) for g, r in enumerate(requests) for i in range(len(r.seeds))]
        try:
            lanes = self._prepare(requests, params, len(jobs))
            return _Call(self, requests, params, jobs, lanes).run(cancelled, progress)
        except torch.OutOfMemoryError:
            self.release()
            raise

    def bucket(self, active: int, lanes: int) -> int:
        """Return the number of lanes that a step computes for the first active lanes."""
        if self.exact:
            return lanes
        return min(lanes, next(b for b in (*BUCKETS, lanes) if b >= min(active, lanes)))

    def _prepare(self, requests: Sequence[Request], params: Params, jobs: int) -> int:
        """Make buffers that fit the call and return the number of lanes."""
        c = self.model.config
        own = max(_own_pages(r, params) for r in requests)
        shared = max(_pages(len(r.prompt) - 1) for r in requests)
        each = own + shared / max(1, min(len(r.seeds) for r in requests if r.seeds)) if jobs else own
        lanes = self.slots if self.exact else min(self.slots, max(jobs, BUCKETS[0]))
        budget = (self._budget() // page_bytes(c, self.model.dtype)) - 1
        if budget < own + shared:
            raise torch.OutOfMemoryError(
                f"a completion needs {own + shared} pages of {page_bytes(c, self.model.dtype)} bytes of keys and values; "
                f"{max(0, budget)} fit"
            )
        fitting = max(1, min(lanes, int(budget / each)))
        if not self.exact:
            lanes = fitting
        pages = min(budget, math.ceil(min(fitting, max(jobs, 1)) * each) + 2 * shared + own) + 1
        if self._cache is None or self._cache.pages < pages:
            self._cache = self._decoder = None
            self._cache = Cache(c, pages, self.model.device, self.model.dtype)
        self._cache.reset()
        old = self._decoder
        longest = 1 << (params.max_tokens - 1).bit_length()
        if old is None or old.lanes < lanes or old.longest < params.max_tokens:
            self._decoder = Decoder(self.model, self._cache, lanes, longest, self.ends)
        return lanes

    def _budget(self) -> int:
        if self.cache_bytes is not None:
            return self.cache_bytes
        if self.model.device.type != "cuda":
            return 4 << 30
        free, _ = torch.cuda.mem_get_info(self.model.device)
        reusable = torch.cuda.memory_reserved(self.model.device) - torch.cuda.memory_allocated(self.model.device)
        held = self._cache.pages * page_bytes(self.model.config, self.model.dtype) if self._cache else 0
        return int(0.8 * (free + reusable + held))


class _Call:
    """The work of one call of Sampler.sample."""

    def __init__(self, sampler: Sampler, requests: Sequence[Request], params: Params, jobs: list[_Job], lanes: int) -> None:
        assert sampler._cache is not None and sampler._decoder is not None
        self.sampler, self.requests, self.params = sampler, requests, params
        self.cache, self.decoder = sampler._cache, sampler._decoder
        self.lanes = lanes
        self.pending = deque(jobs)
        self.groups = [_Group(r, waiting=len(r.seeds)) for r in requests]
        self.out: list[list[Completion | None]] = [[None] * len(r.seeds) for r in requests]
        self.jobs: list[_Job | None] = [None] * lanes  # of each lane
        self.pages: list[list[int]] = [[] for _ in range(lanes)]  # of each lane alone
        self.left = [0] * lanes  # tokens until the limit of each lane
        self.look = LOOK if sampler.model.device.type == "cuda" else 1

    def run(self, cancelled: Callable[[], bool], progress: Callable[[int], None]) -> list[list[Completion]]:
        d, p = self.decoder, self.params
        d.running.zero_()
        d.table.fill_(0)
        d.positions.zero_()
        d.temperature.fill_(p.temperature)
        d.top_p.fill_(p.top_p)
        d.top_k.fill_(p.top_k)
        filtered = p.top_p < 1 or p.top_k > 0
        done = 0
        while self.pending or any(job is not None for job in self.jobs):
            if cancelled():
                raise Cancelled("cancelled")
            self._admit()
            used = [i for i, job in enumerate(self.jobs) if job is not None]
            steps = min(self.look, max(self.left[i] for i in used))
            d.run(self.sampler.bucket(used[-1] + 1, self.lanes), steps, filtered)
            for i in used:
                self.left[i] -= steps
            done += self._harvest()
            progress(done)
            self._compact()
        return [[c for c in row if c is not None] for row in self.out]

    def _admit(self) -> None:
        """Fill free lanes with the next completions, as far as pages are free."""
        free = [i for i, job in enumerate(self.jobs) if job is None]
        lanes: list[int] = []
        starts: list[Lane] = []
        prefill: list[_Group] = []
        copies: list[tuple[int, int]] = []
        while free and self.pending:
            job = self.pending[0]
            group = self.groups[job.group]
            prompt = group.request.prompt
            before = len(prompt) - 1
            own = _own_pages(group.request, self.params)
            shared = 0 if group.pages else _pages(before)
            if self.cache.free < own + shared:
                break
            self.pending.popleft()
            if shared:
                group.pages = self.cache.take(shared)
                prefill.append(group)
            pages = self.cache.take(own)
            if before % PAGE:
                copies.append((group.pages[before // PAGE], pages[0]))
            lane = free.pop(0)
            lanes.append(lane)
            seed = group.request.seeds[job.index]
            limits = group.request.limits
            limit = self.params.max_tokens if limits is None else limits[job.index]
            self.jobs[lane], self.pages[lane], self.left[lane] = job, pages, limit
            starts.append(Lane(prompt[-1], before, limit, seed, group.pages[: before // PAGE] + pages))
        if not lanes:
            return
        self._prefill(prefill)
        if copies:
            self.cache.copy([a for a, _ in copies], [b for _, b in copies])
        self.decoder.fill(lanes, starts)

    def _prefill(self, groups: list[_Group]) -> None:
        """Prefill prompts in packs of padded sizes; each alone where results must be exact."""
        pack: list[_Group] = []
        for i, group in enumerate(groups):
            pack.append(group)
            used = sum(len(g.request.prompt) - 1 for g in pack)
            following = len(groups[i + 1].request.prompt) - 1 if i + 1 < len(groups) else PREFILL[-1]
            if not self.sampler.exact and used + following <= PREFILL[-1]:
                continue
            size = used if self.sampler.exact else next((s for s in PREFILL if s >= used), used)
            self.decoder.prefill([g.request.prompt[:-1] for g in pack], [g.pages for g in pack], size)
            pack = []

    def _harvest(self) -> int:
        """Collect finished lanes and return their number of tokens."""
        running = self.decoder.running[: self.lanes].tolist()
        finished = [i for i, job in enumerate(self.jobs) if job is not None and not running[i]]
        if not finished:
            return 0
        total = 0
        for lane, (tokens, log_probs) in zip(finished, self.decoder.results(finished), strict=True):
            job = self.jobs[lane]
            assert job is not None
            if any(math.isnan(p) for p in log_probs):
                raise Diverged("the logits are not finite")
            finish = "stop" if tokens[-1] in self.sampler.ends else "length"
            self.out[job.group][job.index] = Completion(tokens, log_probs, finish)
            total += len(tokens)
            self.cache.give(self.pages[lane])
            self.jobs[lane], self.pages[lane] = None, []
            group = self.groups[job.group]
            group.waiting -= 1
            if not group.waiting:
                self.cache.give(group.pages)
                group.pages = []
        return total

    def _compact(self) -> None:
        """Move running lanes to the front when a smaller batch can hold them."""
        used = [i for i, job in enumerate(self.jobs) if job is not None]
        if self.pending or not used:
            return
        size = self.sampler.bucket(len(used), self.lanes)
        if used[-1] < size:
            return
        sources = [i for i in used if i >= size]
        targets = [i for i in range(size) if self.jobs[i] is None][: len(sources)]
        self.decoder.move(sources, targets)
        for a, b in zip(sources, targets, strict=True):
            self.jobs[b], self.pages[b], self.left[b] = self.jobs[a], self.pages[a], self.left[a]
            self.jobs[a], self.pages[a] = None, []


def _pages(tokens: int) -> int:
    return -(-tokens // PAGE)


def _own_pages(request: Request, params: Params) -> int:
    """Pages of a completion alone: from the page of the prompt's last token to that of the last token that is fed."""
    before = len(request.prompt) - 1
    return (before + params.max_tokens - 1) // PAGE - before // PAGE + 1


def check(requests: Sequence[Request], params: Params, model: Model) -> None:
    """Raises BadRequest or PromptTooLong for requests that the model cannot sample."""
    c = model.config
    if not 0 < params.temperature <= 1e6:
        raise BadRequest(f"temperature {params.temperature} is not above 0")
    if not 0 < params.top_p <= 1:
        raise BadRequest(f"top_p {params.top_p} is not in (0, 1]")
    if params.top_k < 0 or params.max_tokens < 1:
        raise BadRequest(f"top_k {params.top_k} is below 0 or max_tokens {params.max_tokens} below 1")
    for i, r in enumerate(requests):
        if not r.prompt or not all(0 <= t < c.vocabulary for t in r.prompt):
            raise BadRequest(f"request {i}: the prompt is empty or has a token outside the vocabulary of {c.vocabulary}")
        if r.limits is not None and (len(r.limits) != len(r.seeds) or not all(0 < n <= params.max_tokens for n in r.limits)):
            raise BadRequest(f"request {i}: the limits are not one number from 1 to {params.max_tokens} per seed")
        if len(r.prompt) + params.max_tokens > c.positions:
            raise PromptTooLong(
                f"request {i}: {len(r.prompt)} prompt tokens and {params.max_tokens} new ones exceed the {c.positions} positions"
            )
