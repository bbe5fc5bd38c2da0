"""A decoder with one set of weights for sampling and training.

The query, key and value projections of a layer are one matrix, and so are the
gate and up projections. Checkpoints use Hugging Face's separate tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import nn

from .checkpoint import weight_files
from .config import Config
from .files import read_into, require_finite

__all__ = ["Block", "Config", "Model"]


class Block(nn.Module):
    """The weights of one layer. Matrices are [out, in]."""

    def __init__(self, c: Config, device: str | torch.device, dtype: torch.dtype) -> None:
        super().__init__()

        def weight(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.zeros(*shape, device=device, dtype=dtype))

        def optional(used: bool, *shape: int) -> nn.Parameter | None:
            return weight(*shape) if used else None

        self.norm1 = weight(c.hidden)
        self.qkv = weight(c.qkv, c.hidden)
        self.qkv_bias = optional(c.qkv_bias, c.qkv)
        self.q_norm = optional(c.qk_norm, c.head_size)
        self.k_norm = optional(c.qk_norm, c.head_size)
        self.out = weight(c.hidden, c.heads * c.head_size)
        self.out_bias = optional(c.out_bias, c.hidden)
        self.norm2 = weight(c.hidden)
        self.gate_up = weight(2 * c.mlp, c.hidden)
        self.down = weight(c.hidden, c.mlp)

    def forward(self, layer: Callable[..., Any], *arguments: Any) -> Any:
        """Call layer with the weights, which several ranks may have to gather first."""
        return layer(self, *arguments)


class Model(nn.Module):
    """All weights of a policy."""

    def __init__(self, config: Config, *, device: str | torch.device, dtype: torch.dtype) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Parameter(torch.zeros(config.vocabulary, config.hidden, device=device, dtype=dtype))
        self.layers = nn.ModuleList([Block(config, device, dtype) for _ in range(config.layers)])
        self.norm = nn.Parameter(torch.zeros(config.hidden, device=device, dtype=dtype))
        self.untied = None if config.tied else nn.Parameter(torch.zeros_like(self.embedding))

    def forward(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call function with the model. Several ranks may have to gather its weights first."""
        return function(self, *arguments)

    @staticmethod
    def load(directory: Path | str, *, device: str | torch.device, dtype: torch.dtype) -> Model:
        """Read a Hugging Face checkpoint directory, sharded or not."""
        model = Model(Config.read(Path(directory)), device=device, dtype=dtype)
        model.load_tensors(directory)
        return model

    def moved(self, device: torch.device | str) -> Model:
        """Return a model on a device. It shares the weights that are there already."""
        device = torch.device(device)
        if device.type == self.device.type:
            return self
        there = Model(self.config, device="meta", dtype=self.dtype)
        there.load_state_dict({n: t.to(device, non_blocking=True) for n, t in self.state_dict().items()}, assign=True)
        return there

    def pin(self) -> None:
        """Move the weights into pinned memory, which is copied to a GPU faster."""
        for parameter in self.parameters():
            parameter.data = parameter.data.pin_memory()

    @property
    def head(self) -> torch.Tensor:
        """The output projection, [vocabulary, hidden]."""
        return self.embedding if self.untied is None else self.untied

    @property
    def blocks(self) -> list[Block]:
        """The layers in order."""
        return [layer for layer in self.layers if isinstance(layer, Block)]

    @property
    def device(self) -> torch.device:
        return self.embedding.device

    @property
    def dtype(self) -> torch.dtype:
        return self.embedding.dtype

    def initialize(self, seed: int, std: float = 0.02) -> None:
        """Draw matrices from a normal distribution; norms become 1 and biases 0."""
        generator = torch.Generator(self.device).manual_seed(seed)
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                if parameter.dim() == 2:
                    parameter.normal_(std=std, generator=generator)
                else:
                    parameter.fill_(0.0 if name.endswith("bias") else 1.0)

    def tensors(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Yield the weights under Hugging Face's names, as views that share memory."""
        for name, (parameter, first, rows) in self.places().items():
            yield name, parameter.detach().narrow(0, first, rows)

    def places(self) -> dict[str, tuple[nn.Parameter, int, int]]:
        """Map each Hugging Face name to a parameter, its first row and its number of rows."""
        c = self.config
        out: dict[str, tuple[nn.Parameter, int, int]] = {}

        def add(parameter: nn.Parameter | None, *parts: tuple[str, int]) -> None:
            first = 0
            for name, rows in parts:
                if parameter is not None:
                    out[name] = (parameter, first, rows)
                first += rows

        q, kv = c.heads * c.head_size, c.kv_heads * c.head_size
        add(self.embedding, ("model.embed_tokens.weight", c.vocabulary))
        for i, block in enumerate(self.blocks):
            at = f"model.layers.{i}."
            attention = at + "self_attn."
            for parameter, kind in ((block.qkv, "weight"), (block.qkv_bias, "bias")):
                add(parameter, *((f"{attention}{n}_proj.{kind}", r) for n, r in (("q", q), ("k", kv), ("v", kv))))
            add(block.q_norm, (attention + "q_norm.weight", c.head_size))
            add(block.k_norm, (attention + "k_norm.weight", c.head_size))
            add(block.out, (attention + "o_proj.weight", c.hidden))
            add(block.out_bias, (attention + "o_proj.bias", c.hidden))
            add(block.norm1, (at + "input_layernorm.weight", c.hidden))
            add(block.norm2, (at + "post_attention_layernorm.weight", c.hidden))
            add(block.gate_up, (at + "mlp.gate_proj.weight", c.mlp), (at + "mlp.up_proj.weight", c.mlp))
            add(block.down, (at + "mlp.down_proj.weight", c.hidden))
        add(self.norm, ("model.norm.weight", c.hidden))
        add(self.untied, ("lm_head.weight", c.vocabulary))
        return out

    @torch.no_grad()
    def load_tensors(self, directory: Path | str) -> None:
        """Overwrite the weights with those of a checkpoint of the same shape.

        The model is unchanged if this raises EngineError or ValueError.
        """
        directory = Path(directory)
        config = Config.read(directory)
        if config != self.config:
            raise ValueError(f"{directory}: config.json describes another model")
        wanted = dict(self.tensors())
        files = _weight_files(directory, set(wanted))
        for path, names in files.items():
            with safe_open(path, framework="pt") as f:
                for name in names:
                    shape = tuple(f.get_slice(name).get_shape())
                    if shape != tuple(wanted[name].shape):
                        raise ValueError(f"{path}: {name} has shape {shape}, not {tuple(wanted[name].shape)}")
        require_finite(files)
        read_into({path: {name: wanted[name] for name in names} for path, names in files.items()})


def _weight_files(directory: Path, wanted: set[str]) -> dict[Path, list[str]]:
    """Map each weight file to the wanted tensors in it."""
    found: dict[str, Path] = {}
    for path in weight_files(directory):
        with safe_open(path, framework="pt") as f:
            for name in f.keys():  # noqa: SIM118 (safe_open is no dictionary)
                if name in found:
                    raise ValueError(f"{path}: {name} is also in {found[name]}")
                found[name] = path
    if missing := sorted(wanted - found.keys()):
        raise ValueError(f"{directory}: the weights lack {missing[0]} ({len(missing)} missing)")
    if extra := sorted(found.keys() - wanted - {"lm_head.weight"}):
        raise ValueError(f"{directory}: {extra[0]} belongs to no layer ({len(extra)} extra)")
    out: dict[Path, list[str]] = {}
    for name in sorted(wanted):
        out.setdefault(found[name], []).append(name)
    return out
