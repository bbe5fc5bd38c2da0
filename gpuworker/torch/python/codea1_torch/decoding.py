"""One decoding step over the lanes of a batch, as a CUDA graph where there is CUDA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F

from . import choosing
from .cache import PAGE, SCRATCH, Cache
from .layers import Packed, attention, rotate
from .model import Model

Attend = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
Graphs = dict[tuple[int, bool], "torch.cuda.CUDAGraph"]


class Lane(NamedTuple):
    """The start of one completion."""

    token: int  # the last token of the prompt
    position: int  # its position
    limit: int  # new tokens at most
    seed: int
    table: list[int]  # pages of all positions


class Decoder:
    """The state of all lanes on the device, and the step that advances it.

    A lane is a row of the batch. A step feeds each lane's last token, chooses
    the next one, and stops lanes that reach an end token or their limit. The
    host may look at the state as seldom as it likes.
    """

    def __init__(self, model: Model, cache: Cache, lanes: int, longest: int, ends: list[int]) -> None:
        device = model.device
        self.model, self.cache = model, cache
        self.lanes, self.longest = lanes, longest
        wide = torch.float64 if model.dtype == torch.float64 else torch.float32
        self.cos, self.sin = model.config.rotations(model.config.positions, device, wide)
        self.ends = torch.tensor(ends, device=device, dtype=torch.int64)

        def numbers(*shape: int, fill: int = 0, dtype: torch.dtype = torch.int64) -> torch.Tensor:
            return torch.full(shape, fill, device=device, dtype=dtype)

        self.tokens = numbers(lanes)
        self.positions = numbers(lanes)
        self.counts = numbers(lanes)  # new tokens so far
        self.limits = numbers(lanes)
        self.seeds = numbers(lanes, 2, dtype=torch.int32)
        self.running = numbers(lanes, dtype=torch.bool)
        width = -(-model.config.positions // PAGE)
        self.table = numbers(lanes, width, fill=SCRATCH, dtype=torch.int32)
        self.out_tokens = numbers(lanes, longest)
        self.out_log_probs = torch.zeros(lanes, longest, device=device, dtype=wide)
        self.temperature = torch.ones(1, device=device, dtype=wide)
        self.top_p = torch.ones(1, device=device, dtype=wide)
        self.top_k = numbers(1)
        self.graphs: Graphs = {}
        self.kernels: Any = None
        if device.type == "cuda":
            from . import kernels

            self.kernels = kernels

    @property
    def state(self) -> tuple[torch.Tensor, ...]:
        return (
            self.tokens,
            self.positions,
            self.counts,
            self.limits,
            self.seeds,
            self.running,
            self.table,
            self.out_tokens,
            self.out_log_probs,
        )

    def fill(self, lanes: list[int], starts: list[Lane]) -> None:
        """Put new completions into lanes."""
        rows = torch.tensor(lanes, device=self.model.device)

        def put(target: torch.Tensor, values: list[int] | list[tuple[int, int]]) -> None:
            target.index_copy_(0, rows, torch.tensor(values, dtype=target.dtype).to(rows.device, non_blocking=True))

        put(self.tokens, [s.token for s in starts])
        put(self.positions, [s.position for s in starts])
        put(self.limits, [s.limit for s in starts])
        put(self.seeds, [choosing.split_seed(s.seed) for s in starts])
        put(self.counts, [0] * len(lanes))
        put(self.running, [1] * len(lanes))
        width = max(len(s.table) for s in starts)
        table = torch.full((len(lanes), width), SCRATCH, dtype=torch.int32)
        for i, s in enumerate(starts):
            table[i, : len(s.table)] = torch.tensor(s.table, dtype=torch.int32)
        self.table[:, :width].index_copy_(0, rows, table.to(rows.device, non_blocking=True))

    def move(self, sources: list[int], targets: list[int]) -> None:
        """Copy the state of lanes to other lanes and stop the sources."""
        device = self.model.device
        a, b = torch.tensor(sources, device=device), torch.tensor(targets, device=device)
        for tensor in self.state:
            tensor.index_copy_(0, b, tensor.index_select(0, a))
        self.running.index_fill_(0, a, False)
        self.table.index_fill_(0, a, SCRATCH)

    def results(self, lanes: list[int]) -> list[tuple[list[int], list[float]]]:
        """Return tokens and log-probs of lanes."""
        rows = torch.tensor(lanes, device=self.model.device)
        counts = self.counts[rows].tolist()
        longest = max(counts)
        tokens = self.out_tokens[rows, :longest].cpu().numpy()
        log_probs = self.out_log_probs[rows, :longest].cpu().numpy()
        return [(tokens[i, :n].tolist(), log_probs[i, :n].tolist()) for i, n in enumerate(counts)]

    def run(self, lanes: int, steps: int, filtered: bool) -> None:
        """Advance the first lanes by a number of steps."""
        if self.kernels is None:
            for _ in range(steps):
                self._step(lanes, filtered)
            return
        graph = self.graphs.get((lanes, filtered))
        if graph is None:
            graph = self.graphs[lanes, filtered] = self._capture(lanes, filtered)
        for _ in range(steps):
            graph.replay()

    def _capture(self, lanes: int, filtered: bool) -> torch.cuda.CUDAGraph:
        kept = [t.clone() for t in self.state]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            self.running.zero_()  # the rehearsal must not write to pages in use
            self.table.fill_(SCRATCH)
            self.positions.zero_()
            self._step(lanes, filtered)
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        pool = next(iter(self.graphs.values())).pool() if self.graphs else None
        with torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):
            self._step(lanes, filtered)
        for target, source in zip(self.state, kept, strict=True):
            target.copy_(source)
        return graph

    @torch.no_grad()
    def _step(self, lanes: int, filtered: bool) -> None:
        positions, running, counts = self.positions[:lanes], self.running[:lanes], self.counts[:lanes]
        table = self.table[:lanes]
        page = table.gather(1, (positions // PAGE)[:, None])[:, 0].long()
        places = torch.where(running, page * PAGE + positions % PAGE, positions % PAGE)
        lengths = torch.where(running, positions + 1, 1)  # an idle lane costs one page
        x = F.embedding(self.tokens[:lanes], self.model.embedding)
        states = self._layers(x, positions, places, lambda q, k, v: self._attend(q, k, v, table, lengths))
        tokens, log_probs = choosing.choose(
            self._logits(states), self.seeds[:lanes], positions, self.temperature, self.top_p, self.top_k, filtered
        )
        at = counts.clamp(max=self.longest - 1)[:, None]
        for out, new in ((self.out_tokens[:lanes], tokens), (self.out_log_probs[:lanes], log_probs)):
            out.scatter_(1, at, torch.where(running, new, out.gather(1, at)[:, 0])[:, None])
        counts.add_(running)
        positions.add_(running)
        self.tokens[:lanes].copy_(tokens)
        ended = (tokens[:, None] == self.ends).any(1) | (counts >= self.limits[:lanes]) | log_probs.isnan()
        running.logical_and_(~ended)

    def _logits(self, states: torch.Tensor) -> torch.Tensor:
        if self.kernels is not None and states.dtype != torch.float32:
            return torch.mm(states, self.model.head.t(), out_dtype=torch.float32)
        return F.linear(states, self.model.head)

    def _layers(
        self,
        x: torch.Tensor,
        positions: torch.Tensor,
        places: torch.Tensor,
        attend: Attend,
    ) -> torch.Tensor:
        """Return the normalized states of new tokens, and store their keys and values in places."""
        c, eps, k = self.model.config, self.model.config.eps, self.kernels
        delta: torch.Tensor | None = None

        def norm(weight: torch.Tensor) -> torch.Tensor:
            nonlocal x
            if k is not None:
                y: torch.Tensor = k.rms_norm(x, delta, weight, eps)
                return y
            x = x if delta is None else x + delta
            return F.rms_norm(x, (c.hidden,), weight, eps)

        for i, block in enumerate(self.model.blocks):
            keys, values = self.cache.keys[i], self.cache.values[i]
            qkv = F.linear(norm(block.norm1), block.qkv, block.qkv_bias)
            scatter = self._scatter if k is None else k.scatter_qkv
            q = scatter(qkv, block.q_norm, block.k_norm, self.cos, self.sin, positions, places, keys, values, c.heads, eps)
            y = attend(q, keys, values).reshape(x.shape[0], -1)
            delta = F.linear(y, block.out, block.out_bias)
            gate_up = F.linear(norm(block.norm2), block.gate_up)
            if k is not None:
                y = k.silu_mul(gate_up)
            else:
                gate, up = gate_up.chunk(2, -1)
                y = F.silu(gate) * up
            delta = F.linear(y, block.down)
        return norm(self.model.norm)

    def _scatter(
        self,
        qkv: torch.Tensor,
        q_norm: torch.Tensor | None,
        k_norm: torch.Tensor | None,
        cos: torch.Tensor,
        sin: torch.Tensor,
        positions: torch.Tensor,
        places: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        heads: int,
        eps: float,
    ) -> torch.Tensor:
        """Do without Triton as kernels.scatter_qkv does."""
        size, kv = keys.shape[3], keys.shape[1]
        q, key, value = qkv.view(qkv.shape[0], -1, size).split((heads, kv, kv), 1)
        if q_norm is not None and k_norm is not None:
            q, key = F.rms_norm(q, (size,), q_norm, eps), F.rms_norm(key, (size,), k_norm, eps)
        c, s = cos[positions][:, None], sin[positions][:, None]
        keys[places // PAGE, :, places % PAGE] = rotate(key, c, s)
        values[places // PAGE, :, places % PAGE] = value
        return rotate(q, c, s)

    def _attend(
        self, q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, table: torch.Tensor, lengths: torch.Tensor
    ) -> torch.Tensor:
        """Attend from one query per lane to the lane's pages.

        The plain implementation takes lane by lane, so that a lane's result depends on it alone.
        """
        if self.kernels is not None:
            attended: torch.Tensor = self.kernels.attend(q, keys, values, table, lengths)
            return attended
        out = torch.zeros_like(q)
        for lane, n in enumerate(lengths.tolist()):
            pages = table[lane, : -(-n // PAGE)].long()
            k, v = (t[pages].transpose(0, 1).reshape(1, t.shape[1], -1, t.shape[3])[:, :, :n] for t in (keys, values))
            out[lane] = F.scaled_dot_product_attention(q[lane][None, :, None], k, v, enable_gqa=True)[0, :, 0]
        return out

    @torch.no_grad()
    def prefill(self, prompts: list[list[int]], tables: list[list[int]], size: int) -> None:
        """Store keys and values of prompts in their pages. size is the padded number of tokens."""
        packed = Packed.pack(prompts, self.model.device, size)
        places = []
        for prompt, table in zip(prompts, tables, strict=True):
            pages = torch.tensor(table, dtype=torch.int64)
            at = torch.arange(len(prompt))
            places.append(pages[at // PAGE] * PAGE + at % PAGE)
        padding = len(packed.tokens) - sum(map(len, prompts))
        places.append(torch.arange(padding) % PAGE)  # on the scratch page
        x = F.embedding(packed.tokens, self.model.embedding)
        at = torch.cat(places).to(x.device)
        pages, rows = at // PAGE, at % PAGE

        def attend(q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
            return attention(q, keys[pages, :, rows], values[pages, :, rows], packed)

        self._layers(x, packed.positions, at, attend)
