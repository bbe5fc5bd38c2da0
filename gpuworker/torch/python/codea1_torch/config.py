"""The shape of a model, read from a checkpoint's config.json."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

ARCHITECTURES = ("Qwen2ForCausalLM", "Qwen3ForCausalLM", "LlamaForCausalLM")


@dataclass(frozen=True)
class Llama3Rope:
    """Frequency scaling of Llama 3.1 and later."""

    factor: float
    low: float
    high: float
    positions: int  # of the original training


@dataclass(frozen=True)
class Config:
    """The shape of a decoder with grouped-query attention, RMSNorm and SwiGLU."""

    architecture: str
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_size: int
    mlp: int
    vocabulary: int
    positions: int  # the longest sequence in tokens
    eps: float
    theta: float
    scaling: Llama3Rope | None
    tied: bool  # the output projection is the embedding
    qkv_bias: bool
    out_bias: bool
    qk_norm: bool

    @staticmethod
    def read(directory: Path) -> Config:
        """Read config.json. A ValueError names the key that is missing or not supported."""
        path = Path(directory) / "config.json"
        try:
            raw = json.loads(path.read_text(encoding="utf-8"))
        except (UnicodeDecodeError, json.JSONDecodeError) as err:
            raise ValueError(f"{path}: {err}") from err
        if not isinstance(raw, dict):
            raise ValueError(f"{path}: not a JSON object")
        try:
            return Config.parse(raw)
        except ValueError as err:
            raise ValueError(f"{path}: {err}") from err

    @staticmethod
    def parse(raw: dict[str, Any]) -> Config:
        """Build a Config from the decoded config.json."""
        names = raw.get("architectures") or []
        architecture = names[0] if len(names) == 1 else None
        if architecture not in ARCHITECTURES:
            raise ValueError(f"architectures is {names!r}; supported are {', '.join(ARCHITECTURES)}")
        if raw.get("use_sliding_window"):
            raise ValueError("use_sliding_window is true; only full attention is supported")
        if raw.get("hidden_act", "silu") != "silu":
            raise ValueError(f"hidden_act is {raw['hidden_act']!r}; only silu is supported")
        if raw.get("mlp_bias"):
            raise ValueError("mlp_bias is true, which is not supported")
        if set(raw.get("layer_types") or ["full_attention"]) != {"full_attention"}:
            raise ValueError("layer_types names layers without full attention")
        heads = _count(raw, "num_attention_heads")
        hidden = _count(raw, "hidden_size")
        kv_heads = _count(raw, "num_key_value_heads", heads)
        head_size = _count(raw, "head_dim", max(1, hidden // heads))
        if heads % kv_heads:
            raise ValueError(f"num_attention_heads {heads} is not a multiple of num_key_value_heads {kv_heads}")
        if head_size % 2:
            raise ValueError(f"the head size is {head_size}; rotary embeddings need an even one")
        theta, scaling = _rope(raw)
        qwen2 = architecture == "Qwen2ForCausalLM"
        bias = bool(raw.get("attention_bias"))
        return Config(
            architecture=architecture,
            hidden=hidden,
            layers=_count(raw, "num_hidden_layers"),
            heads=heads,
            kv_heads=kv_heads,
            head_size=head_size,
            mlp=_count(raw, "intermediate_size"),
            vocabulary=_count(raw, "vocab_size"),
            positions=_count(raw, "max_position_embeddings"),
            eps=_number(raw, "rms_norm_eps", 1e-6),
            theta=theta,
            scaling=scaling,
            tied=bool(raw.get("tie_word_embeddings", False)),
            qkv_bias=qwen2 or bias,
            out_bias=bias and not qwen2,
            qk_norm=architecture == "Qwen3ForCausalLM",
        )

    @property
    def qkv(self) -> int:
        """Rows of the joint projection to queries, keys and values."""
        return (self.heads + 2 * self.kv_heads) * self.head_size

    def parameters(self) -> int:
        """Number of weights, without norms and biases."""
        layer = self.hidden * (self.qkv + self.heads * self.head_size + 3 * self.mlp)
        return self.layers * layer + self.vocabulary * self.hidden * (1 if self.tied else 2)

    def rotations(self, length: int, device: str | torch.device, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
        """Cosines and sines of the rotary embedding, each [length, head_size / 2]."""
        exponent = torch.arange(0, self.head_size, 2, device=device, dtype=torch.float64) / self.head_size
        frequency = self.theta**-exponent
        if self.scaling:
            frequency = _scaled(frequency, self.scaling)
        angle = torch.outer(torch.arange(length, device=device, dtype=torch.float64), frequency)
        return angle.cos().to(dtype), angle.sin().to(dtype)


def _scaled(frequency: torch.Tensor, scaling: Llama3Rope) -> torch.Tensor:
    turns = scaling.positions * frequency / (2 * math.pi)
    smooth = ((turns - scaling.low) / (scaling.high - scaling.low)).clamp(0, 1)
    return frequency * (smooth + (1 - smooth) / scaling.factor)


def _rope(raw: dict[str, Any]) -> tuple[float, Llama3Rope | None]:
    rope = raw.get("rope_parameters") or raw.get("rope_scaling") or {}
    theta = _number(rope if "rope_theta" in rope else raw, "rope_theta", 10000.0)
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind == "default":
        return theta, None
    if kind != "llama3":
        raise ValueError(f"rope_type is {kind!r}; supported are default and llama3")
    return theta, Llama3Rope(
        factor=_number(rope, "factor"),
        low=_number(rope, "low_freq_factor"),
        high=_number(rope, "high_freq_factor"),
        positions=_count(rope, "original_max_position_embeddings"),
    )


def _count(raw: dict[str, Any], key: str, default: int | None = None) -> int:
    value = raw.get(key)
    if value is None:
        value = default
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{key} is {value!r}, not a whole number above 0")
    return value


def _number(raw: dict[str, Any], key: str, default: float | None = None) -> float:
    value = raw.get(key)
    if value is None:
        value = default
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < math.inf:
        raise ValueError(f"{key} is {value!r}, not a number above 0")
    return float(value)
