"""Step 10 of the algorithm in float64, one sequence and one token at a time, by autograd."""

from __future__ import annotations

import torch

from codea1_torch.learning import Sequence, UpdateConfig
from codea1_torch.model import Config


def log_probs(weights: dict[str, torch.Tensor], c: Config, tokens: list[int]) -> torch.Tensor:
    """Return the log-softmax after each token, [len(tokens), vocabulary], from Hugging Face's tensors."""
    n, half = len(tokens), c.head_size // 2
    x = weights["model.embed_tokens.weight"][tokens]
    angle = torch.arange(n, dtype=torch.float64)[:, None] * c.theta ** -(torch.arange(half, dtype=torch.float64) / half)
    cos, sin = angle.cos()[:, None], angle.sin()[:, None]

    def norm(v: torch.Tensor, name: str) -> torch.Tensor:
        return v / (v.pow(2).mean(-1, keepdim=True) + c.eps).sqrt() * weights[name]

    def turn(v: torch.Tensor) -> torch.Tensor:
        return torch.cat([v[..., :half] * cos - v[..., half:] * sin, v[..., half:] * cos + v[..., :half] * sin], -1)

    for layer in range(c.layers):
        at = f"model.layers.{layer}."
        y = norm(x, at + "input_layernorm.weight")
        parts = []
        for name, heads in (("q", c.heads), ("k", c.kv_heads), ("v", c.kv_heads)):
            p = y @ weights[f"{at}self_attn.{name}_proj.weight"].T
            if c.qkv_bias:
                p = p + weights[f"{at}self_attn.{name}_proj.bias"]
            p = p.view(n, heads, c.head_size)
            if c.qk_norm and name != "v":
                p = norm(p, f"{at}self_attn.{name}_norm.weight")
            parts.append(p if name == "v" else turn(p))
        q, k, v = parts
        rows = []
        for head in range(c.heads):
            own = head * c.kv_heads // c.heads
            scores = q[:, head] @ k[:, own].T / c.head_size**0.5
            scores = scores.masked_fill(torch.ones(n, n).triu(1).bool(), -torch.inf)
            rows.append(scores.softmax(-1) @ v[:, own])
        x = x + torch.cat(rows, -1) @ weights[at + "self_attn.o_proj.weight"].T
        y = norm(x, at + "post_attention_layernorm.weight")
        gate, up = (y @ weights[f"{at}mlp.{name}_proj.weight"].T for name in ("gate", "up"))
        x = x + (gate / (1 + (-gate).exp()) * up) @ weights[at + "mlp.down_proj.weight"].T
    head = weights["model.embed_tokens.weight"] if c.tied else weights["lm_head.weight"]
    return (norm(x, "model.norm.weight") @ head.T).log_softmax(-1)


def loss(
    weights: dict[str, torch.Tensor], c: Config, sequences: list[Sequence], config: UpdateConfig
) -> tuple[torch.Tensor, dict[str, float]]:
    """Return the loss and the statistics of an update."""
    total = torch.zeros((), dtype=torch.float64)
    sums = dict.fromkeys(("kl", "clipped", "ratio", "entropy"), 0.0)
    count = 0
    for s in sequences:
        all_logs = log_probs(weights, c, s.prompt + s.tokens)
        for i, token in enumerate(s.tokens):
            row = all_logs[len(s.prompt) - 1 + i]
            if config.loss == "ppo":
                row = (row / config.temperature).log_softmax(-1)
            value, terms = token_loss(row[token], s, i, config)
            total = total + value
            count += 1
            sums["entropy"] -= float((row.exp() * row).sum())
            for name, term in terms.items():
                sums[name] += term
    return total / count, {k: v / count for k, v in sums.items()}


def token_loss(p: torch.Tensor, s: Sequence, i: int, config: UpdateConfig) -> tuple[torch.Tensor, dict[str, float]]:
    """Return the loss of one token."""
    if config.loss == "sft":
        return -p, {"ratio": 1.0}
    assert s.old_probs is not None
    limit = config.log_ratio_clamp
    ratio = (p - s.old_probs[i]).clamp(-limit, limit).exp()
    plain = -s.advantage * ratio
    bounded = -s.advantage * ratio.clamp(1 - config.clip_low, 1 + config.clip_high)
    value, clipped = (bounded, 1.0) if bool(bounded > plain) else (plain, 0.0)
    if s.advantage < 0 and config.dual_clip > 0 and value > -s.advantage * config.dual_clip:
        value, clipped = value * 0 - s.advantage * config.dual_clip, 1.0
    if s.weights is not None:
        value = value * s.weights[i]
    kl = torch.zeros((), dtype=torch.float64)
    if s.ref_probs is not None:
        d = (s.ref_probs[i] - p).clamp(-limit, limit)
        kl = d.exp() - d - 1
        value = value + config.kl_coef * kl
    return value, {"ratio": ratio.item(), "clipped": clipped, "kl": kl.item()}
