"""LoRA: low-rank changes of matrices, trained in place of the matrices.

The adapter is peft's. The model always holds the merged weights, base + scale * B @ A in the type of the model, so sampler
and learner compute the same policy, and a checkpoint is complete without peft. The gradients of A and B follow from that
of the merged matrix by the chain rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from . import checkpoint
from .errors import BadRequest, Mismatch
from .files import Rows, write_tensors
from .model import Model

DIRECTORY = "adapter"  # of a checkpoint: peft's files, and the optimizer's state of the adapter
TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")

_WEIGHTS = "adapter_model.safetensors"
_NAME = "default"  # of an adapter, in peft
_PREFIX = "base_model.model."  # of names in peft's files
_SEED = 0


@dataclass(frozen=True)
class Lora:
    """The shape of an adapter."""

    rank: int
    alpha: float  # the scale is alpha / rank
    targets: tuple[str, ...] = TARGETS

    def check(self) -> None:
        if self.rank < 1 or not 0 < self.alpha < float("inf"):
            raise BadRequest(f"LoRA rank {self.rank} or alpha {self.alpha} is not above 0")
        if not self.targets or not set(self.targets) <= set(TARGETS):
            raise BadRequest(f"LoRA targets {', '.join(self.targets)}: want some of {', '.join(TARGETS)}")
        _peft()


def _peft() -> Any:
    try:
        import peft
    except ImportError as error:
        raise BadRequest(
            f"LoRA needs the Python package peft ({error}); `pip install './gpuworker/torch/python[peft]'` in the source of codea1 "
            "installs it, and --lora-rank 0 trains all weights"
        ) from error
    return peft


class Adapter:
    """The adapter of a model. base has the weights that it changes."""

    def __init__(self, model: Model, base: Model, lora: Lora) -> None:
        self._base = base.places()
        self._config = _peft().LoraConfig(
            r=lora.rank,
            lora_alpha=lora.alpha,
            target_modules=list(lora.targets),
            lora_dropout=0.0,
            bias="none",
            task_type="CAUSAL_LM",
        )
        wide = torch.float64 if model.dtype == torch.float64 else torch.float32
        places = {n: p for n, p in model.places().items() if n.split(".")[-2] in lora.targets and n.endswith(".weight")}
        skeleton = _skeleton({n.removesuffix(".weight"): (p[0].shape[1], p[2]) for n, p in places.items()}, wide)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(_SEED)
            _peft().inject_adapter_in_model(self._config, skeleton)
        # Each name with its parameter, its first row, its rows, and peft's layer.
        self._places: dict[str, tuple[nn.Parameter, int, int, Any]] = {
            n: (*p, skeleton.get_submodule(n.removesuffix(".weight"))) for n, p in places.items()
        }
        self.weights: list[torch.Tensor] = []
        self._names: list[str] = []
        for name, (*_, layer) in self._places.items():
            for part in (layer.lora_A[_NAME], layer.lora_B[_NAME]):
                part.to(model.device)
                part.weight.requires_grad_(False)
            self.weights += [layer.lora_A[_NAME].weight.data, layer.lora_B[_NAME].weight.data]
            self._names += [name.removesuffix("weight") + f"lora_{kind}.weight" for kind in "AB"]
        self._fresh = [w.clone() for w in self.weights]
        trained = {id(parameter) for parameter, *_ in self._places.values()}
        for parameter in model.parameters():
            parameter.requires_grad_(id(parameter) in trained)

    def places(self) -> dict[str, tuple[int, int, int]]:
        """Map each name of a checkpoint to the index of a weight, its first row and its rows."""
        return {name: (i, 0, len(w)) for i, (name, w) in enumerate(zip(self._names, self.weights, strict=True))}

    @contextmanager
    def collecting(self, gradients: list[torch.Tensor]) -> Iterator[None]:
        """Add the gradients of backward passes to those of the adapter. That of a matrix is freed at once."""
        parts: dict[int, list[tuple[int, int, int]]] = {}
        owners = {}
        for k, (parameter, first, rows, _) in enumerate(self._places.values()):
            parts.setdefault(id(parameter), []).append((k, first, rows))
            owners[id(parameter)] = parameter

        def collect(parameter: torch.Tensor) -> None:
            assert parameter.grad is not None
            layers = list(self._places.values())
            with torch.no_grad():
                for k, first, rows in parts[id(parameter)]:
                    scale = layers[k][3].scaling[_NAME]
                    a, b = self.weights[2 * k], self.weights[2 * k + 1]
                    whole = parameter.grad.narrow(0, first, rows).to(a.dtype)
                    gradients[2 * k].addmm_(b.t(), whole, alpha=scale)
                    gradients[2 * k + 1].addmm_(whole, a.t(), alpha=scale)
            parameter.grad = None

        handles = [parameter.register_post_accumulate_grad_hook(collect) for parameter in owners.values()]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    @torch.no_grad()
    def merge(self) -> None:
        """Write base and adapter into the model."""
        for parameter, first, rows, merged in self._merged():
            parameter.narrow(0, first, rows).copy_(merged)

    def _merged(self) -> Iterator[tuple[torch.Tensor, int, int, torch.Tensor]]:
        for name, (parameter, first, rows, layer) in self._places.items():
            base, row, count = self._base[name]
            delta = layer.get_delta_weight(_NAME)
            yield parameter, first, rows, base.narrow(0, row, count).to(delta.device, delta.dtype) + delta

    def save(self, directory: Path, optimizer: Mapping[str, torch.Tensor | Rows] | None) -> None:
        """Write the adapter as peft does, and the optimizer's state beside it. The caller flushes the files to disk."""
        directory = directory / DIRECTORY
        directory.mkdir()
        self._config.inference_mode = True
        self._config.save_pretrained(str(directory))
        tensors = {_PREFIX + n: w for n, w in zip(self._names, self.weights, strict=True)}
        files: list[checkpoint.File] = [
            (_WEIGHTS, tensors, {"format": "pt"}),
            *(checkpoint.optimizer_files(optimizer) if optimizer else []),
        ]
        for file, part, about in files:
            write_tensors(directory / file, part, about, flush=False)

    @torch.no_grad()
    def load(self, directory: Path) -> checkpoint.Tensors | None:
        """Read the adapter of a checkpoint into a model that has its weights, and return the optimizer's state."""
        directory = directory / DIRECTORY
        if not directory.is_dir():
            self.reset()
            self._require_merged(directory, "has no adapter, and its weights are not those that the run began with")
            return None
        found, _ = checkpoint.read_tensors(directory / _WEIGHTS)
        wanted = {_PREFIX + n: w for n, w in zip(self._names, self.weights, strict=True)}
        config = checkpoint.read_json(directory / "adapter_config.json")
        for key in ("r", "lora_alpha"):
            if config.get(key) != getattr(self._config, key):
                raise Mismatch(f"{directory}: {key} of the adapter is {config.get(key)!r}, the run's is {getattr(self._config, key)!r}")
        if {n: t.shape for n, t in found.items()} != {n: t.shape for n, t in wanted.items()}:
            raise Mismatch(f"{directory}: the adapter has other matrices than the run's")
        for name, weight in wanted.items():
            weight.copy_(found[name])
        self._require_merged(directory, "the adapter and the weights that the run began with do not add up to the checkpoint's")
        return checkpoint.read_optimizer(directory)

    def reset(self) -> None:
        """Start again with an adapter that changes nothing."""
        for weight, fresh in zip(self.weights, self._fresh, strict=True):
            weight.copy_(fresh)

    def _require_merged(self, directory: Path, problem: str) -> None:
        for parameter, first, rows, merged in self._merged():
            have = parameter.narrow(0, first, rows).to(merged.dtype)
            # Another device may round otherwise.
            if not torch.allclose(have, merged, rtol=4 * torch.finfo(parameter.dtype).eps, atol=1e-6):
                raise Mismatch(f"{directory}: {problem}")


def _skeleton(shapes: dict[str, tuple[int, int]], dtype: torch.dtype) -> nn.Module:
    """Return modules under Hugging Face's names, as peft looks for them. Their weights take no memory."""
    root = nn.Module()
    for name, (columns, rows) in shapes.items():
        at = root
        *path, last = name.split(".")
        for part in path:
            if not hasattr(at, part):
                at.add_module(part, nn.Module())
            at = at.get_submodule(part)
        linear = nn.Linear(columns, rows, bias=False, device="meta", dtype=dtype)
        linear.weight = nn.Parameter(torch.zeros((), dtype=dtype).expand(rows, columns), requires_grad=False)
        at.add_module(last, linear)
    return root
