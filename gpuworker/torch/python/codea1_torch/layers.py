"""The layers of a decoder over packed sequences, for training, scoring and prefilling.

Shapes: T tokens of all sequences one after the other.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from .model import Block, Model

PADDING = 128  # tokens of a sequence of padding; attention's cost grows with the square


@dataclass(frozen=True)
class Packed:
    """Sequences packed into one row of tokens."""

    tokens: torch.Tensor  # [T] int64
    positions: torch.Tensor  # [T] int64, from 0 in each sequence
    starts: torch.Tensor  # [sequences + 1] int32, cumulative lengths
    lengths: list[int]

    @staticmethod
    def pack(sequences: list[list[int]], device: torch.device, size: int | None = None) -> Packed:
        """Pack sequences and fill up to size tokens with short sequences of padding."""
        lengths = [len(s) for s in sequences]
        padding = 0 if size is None else max(0, size - sum(lengths))
        flat = torch.tensor([t for s in sequences for t in s] + [0] * padding, dtype=torch.int64)
        # Padding may be longer than the model's positions.
        positions = torch.cat([*(torch.arange(n) for n in lengths), torch.zeros(padding, dtype=torch.int64)])
        lengths += [PADDING] * (padding // PADDING) + [padding % PADDING] * (padding % PADDING > 0)
        starts = [0]
        for n in lengths:
            starts.append(starts[-1] + n)
        return Packed(
            tokens=flat.to(device, non_blocking=True),
            positions=positions.to(device, non_blocking=True),
            starts=torch.tensor(starts, dtype=torch.int32).to(device, non_blocking=True),
            lengths=lengths,
        )


def hidden_states(model: Model, packed: Packed, *, compiled: bool, recompute_every: int = 0) -> torch.Tensor:
    """Return the normalized states before the output projection, [T, hidden].

    With recompute_every n > 0 the backward pass computes every n-th layer again
    and does not store its activations.
    """
    states: torch.Tensor = model(_hidden_states, packed, compiled, recompute_every)
    return states


def _hidden_states(model: Model, packed: Packed, compiled: bool, recompute_every: int) -> torch.Tensor:
    c = model.config
    wide = torch.float64 if model.dtype == torch.float64 else torch.float32
    cos, sin = c.rotations(max(packed.lengths), model.device, wide)
    cos, sin = cos[packed.positions][:, None], sin[packed.positions][:, None]
    before, after = (_compiled(_before), _compiled(_after)) if compiled else (_before, _after)

    def layer(block: Block, x: torch.Tensor) -> Any:
        y = (block.norm1, block.qkv, block.qkv_bias, block.q_norm, block.k_norm)
        q, k, v = before(x, *y, cos, sin, c.heads, c.kv_heads, c.eps)
        attended = attention(q, k, v, packed).view(x.shape[0], -1)
        return after(x, attended, block.out, block.out_bias, block.norm2, block.gate_up, block.down, c.eps)

    x = F.embedding(packed.tokens, model.embedding)
    for i, block in enumerate(model.blocks):
        if recompute_every and i % recompute_every == 0 and torch.is_grad_enabled():
            x = checkpoint(block, layer, x, use_reentrant=False)
        else:
            x = block(layer, x)
    return F.rms_norm(x, (c.hidden,), model.norm, c.eps)


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, packed: Packed) -> torch.Tensor:
    """Causal attention within each sequence. q is [T, heads, size], k and v are [T, kv_heads, size]."""
    if q.is_cuda and q.dtype in (torch.bfloat16, torch.float16):
        from torch.nn.attention.varlen import varlen_attn

        longest = max(packed.lengths)
        y = varlen_attn(q, k, v, packed.starts, packed.starts, longest, longest, window_size=(-1, 0))
        assert isinstance(y, torch.Tensor)
        return y
    out = []
    for one in zip(q.split(packed.lengths), k.split(packed.lengths), v.split(packed.lengths), strict=True):
        a, b, c = (t.transpose(0, 1)[None] for t in one)
        out.append(F.scaled_dot_product_attention(a, b, c, is_causal=True, enable_gqa=True)[0].transpose(0, 1))
    return torch.cat(out)


def _before(
    x: torch.Tensor,
    norm: torch.Tensor,
    qkv: torch.Tensor,
    bias: torch.Tensor | None,
    q_norm: torch.Tensor | None,
    k_norm: torch.Tensor | None,
    cos: torch.Tensor,
    sin: torch.Tensor,
    heads: int,
    kv_heads: int,
    eps: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Compute a layer's queries, keys and values. The compiler needs tensors, not modules."""
    size = 2 * cos.shape[-1]
    y = F.linear(F.rms_norm(x, norm.shape, norm, eps), qkv, bias)
    q, k, v = y.view(x.shape[0], -1, size).split((heads, kv_heads, kv_heads), 1)
    if q_norm is not None and k_norm is not None:
        q, k = F.rms_norm(q, (size,), q_norm, eps), F.rms_norm(k, (size,), k_norm, eps)
    return rotate(q, cos, sin), rotate(k, cos, sin), v.contiguous()


def _after(
    x: torch.Tensor,
    attended: torch.Tensor,
    out: torch.Tensor,
    bias: torch.Tensor | None,
    norm: torch.Tensor,
    gate_up: torch.Tensor,
    down: torch.Tensor,
    eps: float,
) -> torch.Tensor:
    """Compute a layer's output from its attention."""
    x = x + F.linear(attended, out, bias)
    gate, up = F.linear(F.rms_norm(x, norm.shape, norm, eps), gate_up).chunk(2, -1)
    return x + F.linear(F.silu(gate) * up, down)


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Apply the rotary embedding in the precision of cos and sin."""
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).to(x.dtype)


@functools.cache
def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    # For each number of tokens, with and without gradients, of trained and frozen weights. Above the limit nothing is compiled.
    torch._dynamo.config.recompile_limit = 64
    return torch.compile(function, dynamic=False)
