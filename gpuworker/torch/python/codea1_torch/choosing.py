"""Choice of tokens with a noise that depends on nothing but seed, position and token.

A token is the argmax of tempered logits plus Gumbel noise, which draws from the
softmax (Gumbel-max). The noise is a hash of the completion's seed, the position
and the token id, so a completion does not depend on the other lanes of a batch.
"""

from __future__ import annotations

import torch

_WORD = 0xFFFFFFFF


def split_seed(seed: int) -> tuple[int, int]:
    """Return the low and high 32 bits of a seed as signed integers, for an int32 tensor."""
    low, high = seed & _WORD, seed >> 32 & _WORD
    return low - (low >> 31 << 32), high - (high >> 31 << 32)


def choose(
    logits: torch.Tensor,
    seeds: torch.Tensor,
    positions: torch.Tensor,
    temperature: torch.Tensor,
    top_p: torch.Tensor,
    top_k: torch.Tensor,
    filtered: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw one token per lane and return the tokens and their log-probs in nats.

    logits is [lanes, vocabulary], seeds [lanes, 2] int32, positions [lanes]; temperature, top_p and
    top_k hold one element. Log-probs are those after the temperature and before top-k and top-p.
    Tokens of equal logits at the edge of a filter are all allowed.
    """
    if logits.is_cuda:
        from . import kernels

        return kernels.choose(logits, seeds, positions, temperature, top_p, top_k, filtered)
    wide = logits if logits.dtype == torch.float64 else logits.float()
    x = wide / temperature
    log_probs = torch.log_softmax(x, -1)
    score = x + gumbel(seeds, positions, logits.shape[1]).to(x.dtype)
    if filtered:
        score = score.masked_fill(~_allowed(log_probs, float(top_p), int(top_k)), -torch.inf)
    tokens = score.argmax(-1)
    return tokens, log_probs.gather(1, tokens[:, None])[:, 0].clamp(max=0)


def gumbel(seeds: torch.Tensor, positions: torch.Tensor, vocabulary: int) -> torch.Tensor:
    """Return standard Gumbel noise, [lanes, vocabulary] float64."""
    words = seeds.long() & _WORD
    key = _mix(words[:, 0])
    key = _mix(key ^ words[:, 1])
    key = _mix(key ^ (positions.long() & _WORD))[:, None]
    ids = torch.arange(vocabulary, device=seeds.device)[None]
    bits = _mix(_mix(ids ^ key) + key & _WORD)
    uniform = (bits.double() + 0.5) / 2**32
    return -torch.log(-torch.log1p(-uniform))


def _mix(x: torch.Tensor) -> torch.Tensor:
    """Mix 32-bit words that are stored as int64."""
    x = x ^ x >> 16
    x = x * 0x7FEB352D & _WORD
    x = x ^ x >> 15
    x = x * 0x846CA68B & _WORD
    return x ^ x >> 16


def _allowed(log_probs: torch.Tensor, top_p: float, top_k: int) -> torch.Tensor:
    descending, _ = log_probs.sort(-1, descending=True)
    last = torch.full_like(descending[:, :1], -torch.inf)
    if 0 < top_k < descending.shape[1]:
        last = descending[:, top_k - 1 : top_k]
    if top_p < 1:
        mass = descending.exp().masked_fill(descending < last, 0)
        above = mass.cumsum(-1) - mass  # of the tokens before
        inside = (above < top_p * mass.sum(-1, keepdim=True)) & (mass > 0)
        edge = descending.masked_fill(~inside, torch.inf).amin(-1, keepdim=True)
        last = torch.maximum(last, edge)
    return log_probs >= last
