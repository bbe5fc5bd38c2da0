"""Log-probs and optimizer steps on packed sequences."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from collections.abc import Sequence as SequenceOf
from contextlib import nullcontext
from dataclasses import dataclass

import torch

from . import optimizer
from .errors import BadRequest, Cancelled, Diverged
from .files import Rows
from .layers import Packed, hidden_states
from .lora import Adapter
from .losses import Sums, Targets, UpdateConfig, UpdateStats, loss_gradients, score_hidden
from .model import Model
from .ranks import Ranks, share_out

__all__ = ["Learner", "Sequence", "UpdateConfig", "UpdateStats"]

CPU_MICRO_TOKENS = 4096
MOST_MICRO_TOKENS = 32768


@dataclass(frozen=True)
class Sequence:
    """One training example. The loss covers the response tokens; see Sequence in gpuworker/engine.go."""

    prompt: list[int]
    tokens: list[int]
    old_probs: list[float] | None = None
    ref_probs: list[float] | None = None
    advantage: float = 0.0
    weights: list[float] | None = None


_NOTHING = Sequence([0], [0])  # of a pass of a rank that has no sequences left


class Learner:
    """Trains a model with AdamW on float32 master weights.

    With the same device, the same weights and the same calls it computes the
    same weights bit for bit.
    """

    def __init__(
        self,
        model: Model,
        *,
        micro_tokens: int | None = None,
        recompute_every: int = 0,
        optimizer_state: str = "device",
        adapter: Adapter | None = None,
        ranks: Ranks | None = None,
    ) -> None:
        """Create a learner. optimizer_state is one of optimizer.KINDS. With an adapter, only that is trained.

        micro_tokens bounds the packed tokens of one forward and backward pass, by default what fits in the
        device's memory. recompute_every n > 0 recomputes the activations of every n-th layer.
        Each of several ranks computes a part of the sequences.
        """
        self.model = model
        self.adapter = adapter
        self.recompute_every = recompute_every
        self.halvings = 0  # of the micro_tokens that are estimated to fit
        self._micro_tokens = micro_tokens
        self._ranks = ranks or Ranks()
        self._dtype = model.dtype
        self._compiled = model.device.type == "cuda"
        self._wide = torch.float64 if model.dtype == torch.float64 else torch.float32
        self._kind = optimizer.KINDS[optimizer_state]
        self._optimizer: optimizer.AdamW | None = None
        self._gradients: list[torch.Tensor] = []

    @property
    def micro_tokens(self) -> int:
        """Packed tokens of one pass. A caller lowers it after torch.OutOfMemoryError."""
        if self._micro_tokens is None:
            self._micro_tokens = max(1, self._ranks.least(self._fitting_tokens()) >> self.halvings)
        return self._micro_tokens

    @micro_tokens.setter
    def micro_tokens(self, tokens: int) -> None:
        self._micro_tokens = tokens

    @torch.no_grad()
    def log_probs(
        self,
        model: Model,
        sequences: SequenceOf[Sequence],
        temperature: float,
        *,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> list[list[float]]:
        """Return log p(token) in nats for each response token, under model (the policy or a reference)."""
        _check(sequences, model)
        if not (math.isfinite(temperature) and temperature > 0):
            raise BadRequest(f"temperature {temperature} is not above 0")
        found: dict[int, list[float]] = {}
        finite = True
        for batch in self._passes(sequences):
            if self._ranks.any(cancelled()):
                raise Cancelled("cancelled")
            some = [sequences[i] for i in batch] or [_NOTHING]
            hidden, tokens = self._responses(model, some)
            scores = score_hidden(hidden, model.head, tokens, temperature)
            finite = finite and bool(torch.isfinite(scores).all())
            for i, part in zip(batch, scores.split([len(s.tokens) for s in some]), strict=False):
                found[i] = part.tolist()
        self._forget(model)
        if self._ranks.any(not finite):
            raise Diverged("a log-prob is not finite")
        for others in self._ranks.gather(found):
            found.update(others)
        return [found.get(i, []) for i in range(len(sequences))]

    def update(
        self,
        sequences: SequenceOf[Sequence],
        config: UpdateConfig,
        *,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> UpdateStats:
        """Take one AdamW step on the mean loss over all response tokens.

        If it raises BadRequest, Cancelled, Diverged or torch.OutOfMemoryError,
        weights and optimizer are unchanged.
        """
        _check(sequences, self.model)
        tokens = _check_update(sequences, config)
        self._make_optimizer()
        try:
            sums = Sums.zero(self.model.device)
            with self.adapter.collecting(self._gradients) if self.adapter else nullcontext():
                passes = self._passes(sequences)
                for number, batch in enumerate(passes, 1):
                    if self._ranks.any(cancelled()):
                        self._abandon()
                        raise Cancelled("cancelled")
                    self._begin_pass(number == len(passes))
                    if batch:
                        self._backward([sequences[i] for i in batch], config, 1 / tokens, sums)
                    else:
                        self._pass_nothing()
            for total in vars(sums).values():
                self._ranks.sum(total)
            self._sum_gradients()
            norm = self._clip(config)
        except BaseException:
            self._clear()
            raise
        self._step(config)
        self._clear()
        return UpdateStats(
            loss=sums.loss.item() / tokens,
            kl=sums.kl.item() / tokens,
            clip_fraction=sums.clipped.item() / tokens,
            ratio_mean=sums.ratio.item() / tokens,
            entropy=sums.entropy.item() / tokens,
            grad_norm=norm,
            tokens=tokens,
        )

    def optimizer_tensors(self) -> Mapping[str, torch.Tensor | Rows] | None:
        """Return the optimizer state, or None before the first update.

        The names are "step", and "m." and "v." and, where the model is not
        float32, "master." with the Hugging Face name of a weight.
        """
        if self._optimizer is None or not self._optimizer.steps:
            return None
        out = {"step": torch.tensor([self._optimizer.steps])}
        for i, names in self._names().items():
            moments, master = self._optimizer.moments(i), self._optimizer.masters[i]
            for name, first, rows in names:
                for kind, moment in zip(("m.", "v."), moments, strict=True):
                    out[kind + name] = moment.narrow(0, first, rows)
                if self.adapter is None and master.dtype != self._dtype:
                    out["master." + name] = master.narrow(0, first, rows)
        return out

    @torch.no_grad()
    def load_optimizer(self, tensors: dict[str, torch.Tensor] | None) -> None:
        """Replace the optimizer state, after the model's weights were loaded. None starts a new one."""
        self._optimizer, self._gradients = None, []
        if tensors is None:
            return
        wanted = {f"{kind}.{name}" for name in self._places() for kind in ("m", "v")} | {"step"}
        if missing := sorted(wanted - tensors.keys()):
            raise ValueError(f"the optimizer state lacks {missing[0]}")
        made = self._make_optimizer()
        for i, names in self._names().items():
            first, second = (torch.cat([tensors[kind + name] for name, _, _ in names]) for kind in ("m.", "v."))
            made.set_moments(i, first, second)
            for name, row, rows in names:
                if "master." + name in tensors:
                    made.masters[i].narrow(0, row, rows).copy_(tensors["master." + name])
        made.steps = int(tensors["step"])

    def take_weights(self, source: Model) -> None:
        """Take the weights of rank 0's source where they are divided among ranks."""

    def give_weights(self, into: Model) -> bool:
        """Copy the weights into a model where they are divided among ranks. It reports whether they are."""
        return False

    def rows(self, name: str) -> slice:
        """Return the rows of a weight whose optimizer's state load_optimizer needs, by default all."""
        return slice(None)

    def _places(self) -> dict[str, tuple[int, int, int]]:
        """Map each Hugging Face name to the index of a parameter, its first row and its rows."""
        if self.adapter is not None:
            return self.adapter.places()
        index = {id(p): i for i, p in enumerate(self.model.parameters())}
        return {name: (index[id(p)], first, rows) for name, (p, first, rows) in self.model.places().items()}

    def _names(self) -> dict[int, list[tuple[str, int, int]]]:
        """Map the index of each parameter to the Hugging Face names in it, each with its first row and rows."""
        out: dict[int, list[tuple[str, int, int]]] = {}
        for name, (i, first, rows) in self._places().items():
            out.setdefault(i, []).append((name, first, rows))
        return out

    def _passes(self, sequences: SequenceOf[Sequence]) -> list[list[int]]:
        """Return the indices of each pass of this rank. All ranks have as many; the last ones may be empty."""
        shares = share_out([len(s.prompt) + len(s.tokens) if s.tokens else 0 for s in sequences], self._ranks.size)
        plans = [self._batches(sequences, share) for share in shares]
        own = plans[self._ranks.rank]
        return own + [[]] * (max(map(len, plans)) - len(own))

    def _batches(self, sequences: SequenceOf[Sequence], chosen: list[int]) -> list[list[int]]:
        """Split chosen indices of sequences, in order, into packs of at most micro_tokens."""
        out: list[list[int]] = []
        room = 0
        for i in chosen:
            s = sequences[i]
            if not s.tokens:
                continue
            n = len(s.prompt) + len(s.tokens)
            if not out or n > room:
                out.append([])
                room = max(self.micro_tokens, n)
            out[-1].append(i)
            room -= n
        return out

    def _responses(self, model: Model, batch: list[Sequence]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the states that predict the response tokens, [R, hidden], and the tokens, [R]."""
        rows: list[int] = []
        tokens: list[int] = []
        at = 0
        for s in batch:
            rows.extend(range(at + len(s.prompt) - 1, at + len(s.prompt) + len(s.tokens) - 1))
            tokens.extend(s.tokens)
            at += len(s.prompt) + len(s.tokens)
        # A compiled layer needs few shapes; otherwise padding would only cost time.
        size = next((n for n in self._sizes() if n >= at), None) if self._compiled else None
        packed = Packed.pack([s.prompt + s.tokens for s in batch], model.device, size)
        states = hidden_states(model, packed, compiled=self._compiled and size is not None, recompute_every=self.recompute_every)
        return states[torch.tensor(rows).to(model.device)], torch.tensor(tokens).to(model.device)

    def _sizes(self) -> list[int]:
        """Return the padded numbers of tokens of a pass, in ascending order."""
        sizes = [self.micro_tokens]
        if sizes[0] > 4096:
            sizes = [sizes[0] * k // 8 for k in range(1, 9)]
        while sizes[0] > 4096:
            sizes.insert(0, sizes[0] // 4)
        return sizes

    def _backward(self, batch: list[Sequence], config: UpdateConfig, scale: float, sums: Sums) -> None:
        """Add a micro-batch's gradients to the accumulated ones."""
        hidden, tokens = self._responses(self.model, batch)

        def flat(rows: list[list[float]]) -> torch.Tensor:
            return torch.tensor([v for row in rows for v in row], dtype=self._wide).to(self.model.device)

        sft = config.loss == "sft"
        targets = Targets(
            tokens=tokens,
            old=flat([[0.0] * len(s.tokens) if sft else s.old_probs or [] for s in batch]),
            reference=None if sft or batch[0].ref_probs is None else flat([s.ref_probs or [] for s in batch]),
            advantages=flat([[s.advantage] * len(s.tokens) for s in batch]),
            weights=None if sft or batch[0].weights is None else flat([s.weights or [] for s in batch]),
        )
        head = self.model.head
        total = self._head_total(head)
        with torch.no_grad():
            gradient = loss_gradients(hidden.detach(), head, targets, config, scale, total, sums)
        self._propagate(hidden, gradient, head, total)

    def _pass_nothing(self) -> None:
        """Take part in a pass of the other ranks."""
        self._backward([_NOTHING], UpdateConfig(loss="sft"), 0.0, Sums.zero(self.model.device))

    def _begin_pass(self, last: bool) -> None:
        """Prepare for a pass of an update."""

    def _abandon(self) -> None:
        """End an update after some of its passes."""

    def _head_total(self, head: torch.Tensor) -> torch.Tensor | None:
        """Return the tensor to add the gradient of the output projection to."""
        index = next(i for i, p in enumerate(self.model.parameters()) if p is head)
        return None if self.adapter else self._gradients[index]

    def _propagate(self, hidden: torch.Tensor, gradient: torch.Tensor, head: torch.Tensor, total: torch.Tensor | None) -> None:
        """Add the gradients of all other weights."""
        hidden.backward(gradient)
        if self.adapter is not None:
            return
        with torch.no_grad():
            for total, parameter in zip(self._gradients, self.model.parameters(), strict=True):
                if parameter.grad is not None:
                    total.add_(parameter.grad)
                    parameter.grad = None

    def _make_optimizer(self) -> optimizer.AdamW:
        parameters = self.adapter.weights if self.adapter else list(self.model.parameters())
        if not self._gradients:
            self._gradients = [torch.zeros_like(p, dtype=self._wide, requires_grad=False) for p in parameters]
        if self._optimizer is None:
            self._optimizer = self._kind(parameters, self._wide)
        return self._optimizer

    def _sum_gradients(self) -> None:
        """Sum the gradients of the ranks."""
        for gradient in self._gradients:
            self._ranks.sum(gradient)

    def _norm(self, norms: torch.Tensor) -> torch.Tensor:
        """Return the norm of all gradients from the norm of each."""
        total: torch.Tensor = norms.norm()
        return total

    def _forget(self, model: Model) -> None:
        """Free the memory that the passes of log_probs left."""

    @torch.no_grad()
    def _clip(self, config: UpdateConfig) -> float:
        """Scale the gradients to the largest allowed norm and return the norm before."""
        norms = torch._foreach_norm(self._gradients, 2)
        norm = float(self._norm(torch.stack([n.double() for n in norms])))
        if not math.isfinite(norm):
            raise Diverged(f"the gradient norm is {norm}")
        if 0 < config.grad_clip < norm:
            torch._foreach_mul_(self._gradients, config.grad_clip / norm)
        return norm

    @torch.no_grad()
    def _step(self, config: UpdateConfig) -> None:
        self._make_optimizer().step(self._gradients, config)
        if self.adapter is not None:
            self.adapter.merge()

    def _clear(self) -> None:
        for parameter in self.model.parameters():
            parameter.grad = None
        if self._gradients:
            torch._foreach_zero_(self._gradients)

    def _fitting_tokens(self) -> int:
        """Estimate the packed tokens of a pass that fit in the GPU's memory, a power of two.

        A layer stores per token about 12 rows of the hidden size and 4 of the
        MLP's; the logits of a chunk and their gradient take 6 bytes an element.
        """
        if self.model.device.type != "cuda":
            return CPU_MICRO_TOKENS
        c = self.model.config
        free, _ = torch.cuda.mem_get_info(self.model.device)
        free += torch.cuda.memory_reserved(self.model.device) - torch.cuda.memory_allocated(self.model.device)
        free += self._room() - 6 * 4096 * c.vocabulary
        each = self._dtype.itemsize * c.layers * (12 * c.hidden + 4 * c.mlp)
        return min(MOST_MICRO_TOKENS, 1 << max(9, int(0.9 * free / each).bit_length() - 1))

    def _room(self) -> int:
        """Return the bytes of gradients and optimizer's state that a pass leaves, below 0 for those to come."""
        c = self.model.config
        parameters = sum(p.numel() for p in self.model.parameters())
        room = -2 * parameters
        if self.adapter is not None:
            room -= 12 * c.hidden * c.mlp  # the gradient of the largest matrix, also in float32
        elif self._optimizer is None:
            room -= (4 + self._kind.state_bytes) * parameters
        elif not self._gradients:
            room -= 4 * parameters
        return room


def _check(sequences: SequenceOf[Sequence], model: Model) -> None:
    c = model.config
    for i, s in enumerate(sequences):
        if not s.prompt:
            raise BadRequest(f"sequence {i}: the prompt is empty")
        if len(s.prompt) + len(s.tokens) > c.positions:
            raise BadRequest(f"sequence {i}: {len(s.prompt) + len(s.tokens)} tokens exceed the {c.positions} positions")
        if not all(0 <= t < c.vocabulary for t in (*s.prompt, *s.tokens)):
            raise BadRequest(f"sequence {i}: a token is outside the vocabulary of {c.vocabulary}")


def _check_update(sequences: SequenceOf[Sequence], config: UpdateConfig) -> int:
    """Return the number of response tokens of a valid update."""
    tokens = sum(len(s.tokens) for s in sequences)
    if not tokens:
        raise BadRequest("the update has no response tokens")
    if config.loss not in ("ppo", "sft"):
        raise BadRequest(f"loss {config.loss!r} is not ppo or sft")
    if config.loss == "sft":
        return tokens
    if not config.temperature > 0 or not config.log_ratio_clamp > 0:
        raise BadRequest(f"temperature {config.temperature} or log-ratio clamp {config.log_ratio_clamp} is not above 0")
    weighted = any(s.weights is not None for s in sequences)
    referenced = any(s.ref_probs is not None for s in sequences) or config.kl_coef != 0
    for i, s in enumerate(sequences):
        if len(s.old_probs or []) != len(s.tokens):
            raise BadRequest(f"sequence {i}: {len(s.old_probs or [])} old log-probs for {len(s.tokens)} tokens")
        if referenced and len(s.ref_probs or []) != len(s.tokens):
            raise BadRequest(f"sequence {i}: {len(s.ref_probs or [])} reference log-probs for {len(s.tokens)} tokens")
        if weighted and len(s.weights or []) != len(s.tokens):
            raise BadRequest(f"sequence {i}: {len(s.weights or [])} weights for {len(s.tokens)} tokens")
        if not all(map(math.isfinite, (s.advantage, *(s.old_probs or []), *(s.ref_probs or []), *(s.weights or [])))):
            raise BadRequest(f"sequence {i}: the advantage, a log-prob or a weight is not finite")
    return tokens
