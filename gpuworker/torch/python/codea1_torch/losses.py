"""The loss of each response token, its derivative, and the output projection.

The derivative of the loss by a log-prob has a closed form, so the gradients of
hidden states and output projection are computed in the forward pass, chunk by
chunk. No tensor of all logits exists, and no logits are computed twice.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
import torch.nn.functional as F

CHUNK = 4096  # rows of logits at a time
CPU_CHUNK = 256


@dataclass(frozen=True)
class UpdateConfig:
    """Hyper-parameters of one optimizer step; see UpdateConfig in gpuworker/engine.go."""

    loss: str = "ppo"  # or "sft"
    clip_low: float = 0.2
    clip_high: float = 0.28
    dual_clip: float = 10.0
    log_ratio_clamp: float = 20.0
    kl_coef: float = 0.0
    temperature: float = 1.0
    learning_rate: float = 1e-6
    weight_decay: float = 0.0
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    grad_clip: float = 1.0


@dataclass(frozen=True)
class UpdateStats:
    """Means over response tokens; see UpdateStats in gpuworker/engine.go."""

    loss: float
    kl: float
    clip_fraction: float
    ratio_mean: float
    entropy: float
    grad_norm: float
    tokens: int


@dataclass(frozen=True)
class Targets:
    """The response tokens of a micro-batch, each [R]."""

    tokens: torch.Tensor
    old: torch.Tensor
    reference: torch.Tensor | None
    advantages: torch.Tensor
    weights: torch.Tensor | None = None

    def chunk(self, first: int, last: int) -> Targets:
        """Return the rows from first to last."""

        def part(values: torch.Tensor | None) -> torch.Tensor | None:
            return None if values is None else values[first:last]

        return Targets(self.tokens[first:last], self.old[first:last], part(self.reference), self.advantages[first:last], part(self.weights))


@dataclass
class Sums:
    """Sums over response tokens, as tensors so that no step waits for the device."""

    loss: torch.Tensor
    kl: torch.Tensor
    clipped: torch.Tensor
    ratio: torch.Tensor
    entropy: torch.Tensor

    @staticmethod
    def zero(device: torch.device) -> Sums:
        """Return sums of no tokens."""
        return Sums(*(torch.zeros((), device=device, dtype=torch.float64) for _ in fields(Sums)))

    def add(self, **terms: torch.Tensor) -> None:
        """Add the values of tokens."""
        for name, value in terms.items():
            getattr(self, name).add_(value.double().sum())


def token_terms(config: UpdateConfig, log_probs: torch.Tensor, t: Targets) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """Return loss, KL, clipped and ratio of each token, and the derivative of the loss by the log-prob.

    The surrogate is PPO's (Schulman et al. 2017) with separate bounds (DAPO) and a dual clip (Ye et al.
    2020); the KL estimate is Schulman's k3. A bound or a clamp that applies makes the derivative 0.
    """
    if config.loss == "sft":
        zero, one = torch.zeros_like(log_probs), torch.ones_like(log_probs)
        return {"loss": -log_probs, "kl": zero, "clipped": zero, "ratio": one}, -one
    delta = log_probs - t.old
    inside = delta.abs() <= config.log_ratio_clamp
    ratio = delta.clamp(-config.log_ratio_clamp, config.log_ratio_clamp).exp()
    loss = -t.advantages * ratio
    slope = torch.where(inside, loss, 0.0)
    clipped = torch.zeros_like(loss)
    upper = -t.advantages * ratio.clamp(1 - config.clip_low, 1 + config.clip_high)
    binds = upper > loss
    loss, slope, clipped = torch.where(binds, upper, loss), slope.masked_fill(binds, 0), clipped.masked_fill(binds, 1)
    if config.dual_clip > 0:
        most = -t.advantages * config.dual_clip
        binds = (t.advantages < 0) & (most < loss)
        loss, slope, clipped = torch.where(binds, most, loss), slope.masked_fill(binds, 0), clipped.masked_fill(binds, 1)
    if t.weights is not None:
        loss, slope = loss * t.weights, slope * t.weights
    kl = torch.zeros_like(loss)
    if t.reference is not None:
        d = t.reference - log_probs
        near = d.clamp(-config.log_ratio_clamp, config.log_ratio_clamp)
        kl = near.exp() - near - 1
        loss = loss + config.kl_coef * kl
        slope = slope + config.kl_coef * torch.where(near == d, 1 - d.exp(), 0.0)
    return {"loss": loss, "kl": kl, "clipped": clipped, "ratio": ratio}, slope


def logits(hidden: torch.Tensor, head: torch.Tensor) -> torch.Tensor:
    """Return the logits of rows, in float32 for a bfloat16 model."""
    if hidden.is_cuda and hidden.dtype == torch.bfloat16:
        return torch.mm(hidden, head.t(), out_dtype=torch.float32)
    return F.linear(hidden, head)


def score(z: torch.Tensor, tokens: torch.Tensor, temperature: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Return log-prob of the token and entropy of each row of logits, in nats."""
    if z.is_cuda and z.dtype == torch.float32:
        from . import kernels

        return kernels.score(z, tokens, temperature)
    all_probs = torch.log_softmax(z / temperature, -1)
    return all_probs.gather(1, tokens[:, None])[:, 0], -(all_probs.exp() * all_probs).sum(-1)


def score_hidden(hidden: torch.Tensor, head: torch.Tensor, tokens: torch.Tensor, temperature: float) -> torch.Tensor:
    """Return the log-prob of each token, [R], chunk by chunk."""
    size = CHUNK if hidden.is_cuda else CPU_CHUNK
    parts = [score(logits(hidden[i : i + size], head), tokens[i : i + size], temperature)[0] for i in range(0, len(tokens), size)]
    return torch.cat(parts)


def _logit_gradient(
    z: torch.Tensor, tokens: torch.Tensor, log_probs: torch.Tensor, slopes: torch.Tensor, temperature: float, like: torch.Tensor
) -> torch.Tensor:
    if z.is_cuda and z.dtype == torch.float32:
        from . import kernels

        return kernels.logit_gradient(z, tokens, log_probs, slopes, temperature, like.dtype)
    gradient = torch.softmax(z / temperature, -1).neg_()
    rows = torch.arange(len(tokens), device=z.device)
    gradient[rows, tokens] += 1
    return gradient.mul_(slopes[:, None] / temperature)


def loss_gradients(
    hidden: torch.Tensor, head: torch.Tensor, t: Targets, config: UpdateConfig, scale: float, head_gradient: torch.Tensor | None, sums: Sums
) -> torch.Tensor:
    """Return the gradient of scale times the summed loss by hidden, [R, hidden].

    It adds the gradient of the output projection to head_gradient, unless that
    is None, and the statistics to sums.
    """
    temperature = 1.0 if config.loss == "sft" else config.temperature
    out = torch.empty_like(hidden)
    size = CHUNK if hidden.is_cuda else CPU_CHUNK
    for first in range(0, len(t.tokens), size):
        rows = slice(first, first + size)
        part = t.chunk(first, first + size)
        z = logits(hidden[rows], head)
        log_probs, entropies = score(z, part.tokens, temperature)
        terms, slopes = token_terms(config, log_probs, part)
        sums.add(entropy=entropies, **terms)
        gradient = _logit_gradient(z, part.tokens, log_probs, slopes * scale, temperature, hidden)
        del z
        torch.mm(gradient, head, out=out[rows])
        if head_gradient is None:
            continue
        if head_gradient.dtype == gradient.dtype:
            head_gradient.addmm_(gradient.t(), hidden[rows])
        elif gradient.is_cuda:
            head_gradient.add_(torch.mm(gradient.t(), hidden[rows], out_dtype=head_gradient.dtype))
        else:
            head_gradient.addmm_(gradient.t().to(head_gradient.dtype), hidden[rows].to(head_gradient.dtype))
    return out
