"""A model whose weights, gradients and optimizer's state are divided among the ranks (FSDP2), and its training.

A rank keeps some rows of each weight in float32. The rows of a layer are gathered in the type of the model before the layer
is computed. The gradients are summed in float32, and each rank gets those of its rows. Where the memory is large, the whole
weights and gradients stay on each device for an update; otherwise those of a layer are freed after it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import Shard, distribute_tensor

from . import optimizer
from .config import Config
from .files import Rows
from .learning import Learner
from .model import Model
from .ranks import Ranks

__all__ = ["ShardedLearner", "Shards"]


class Shards:
    """The shards of a model. model computes with them as if it were whole."""

    def __init__(self, config: Config, ranks: Ranks, device: str, stored: torch.dtype, computed: torch.dtype) -> None:
        """Create shards without values, in the type stored. Layers are computed in the type computed."""
        self.ranks = ranks
        self.dtype = computed
        self.skeleton = Model(config, device="meta", dtype=computed)
        self.model = Model(config, device="meta", dtype=stored)
        self._mesh = init_device_mesh(torch.device(device).type, (ranks.size,))
        policy = MixedPrecisionPolicy(param_dtype=computed, reduce_dtype=stored, cast_forward_inputs=False)
        self._parts: list[FSDPModule] = []
        # The output projection is needed between forward and backward pass, so the outermost part stays whole there.
        for part, again in (*((block, True) for block in self.model.blocks), (self.model, False)):
            sharded: FSDPModule = fully_shard(part, mesh=self._mesh, reshard_after_forward=again, mp_policy=policy)
            # A learner divides by the tokens of all ranks, so the gradients are summed.
            sharded.set_gradient_divide_factor(1.0)
            sharded.set_force_sum_reduction_for_comms(True)
            self._parts.append(sharded)
        self.model.to_empty(device=device)
        for sharded in self._parts:
            sharded.unshard()  # the first time moves the shards to their final memory
            sharded.reshard()
        self.parameters = list(self.model.parameters())  # of the model while it is not whole
        self.local = [_local(p) for p in self.parameters]

    @torch.no_grad()
    def scatter(self, source: Model) -> None:
        """Take the weights from the model of rank 0. The other ranks may have it on the device meta."""
        self.reshard()
        for shard, whole in zip(self.local, source.parameters(), strict=True):
            values = whole.to(shard.device) if whole.device.type != "meta" else torch.empty_like(whole, device=shard.device)
            shard.copy_(_local(distribute_tensor(values.detach(), self._mesh, [Shard(0)])))

    @torch.no_grad()
    def gather(self, into: Model) -> None:
        """Copy all weights into a model. A rank without one gives one on the device meta."""
        for parameter, whole in zip(self.parameters, into.parameters(), strict=True):
            shards: Any = parameter.detach().to(whole.dtype)
            values = shards.full_tensor()
            if whole.device.type != "meta":
                whole.copy_(values)

    def hold(self, holds: bool) -> None:
        """Keep the whole weights after a pass, until reshard."""
        for part in self._parts:
            part.set_reshard_after_backward(not holds, recurse=False)
            part.set_reshard_after_forward(not holds and part is not self._parts[-1], recurse=False)

    def sum_after_pass(self, sums: bool) -> None:
        """Choose whether the next pass ends with the sums over the ranks. The gradients of all passes since the last sums count."""
        for part in self._parts:
            part.set_requires_gradient_sync(sums, recurse=False)

    def reshard(self) -> None:
        """Free the whole weights. They are gathered anew when they are needed."""
        for part in self._parts:
            part.reshard()

    def places(self) -> dict[str, Place]:
        """Map each Hugging Face name to the rows of this rank."""
        index = {id(p): i for i, p in enumerate(self.skeleton.parameters())}
        out = {}
        for name, (parameter, first, rows) in self.skeleton.places().items():
            each = -(-len(parameter) // self.ranks.size)
            begin = min(each * self.ranks.rank, len(parameter))
            low, high = max(first, begin), min(first + rows, begin + each, len(parameter))
            shape = (rows, *parameter.shape[1:])
            if low < high:
                out[name] = Place(index[id(parameter)], low - begin, low - first, high - low, shape)
            else:
                out[name] = Place(index[id(parameter)], 0, 0, 0, shape)
        return out


@dataclass(frozen=True)
class Place:
    """The rows of a weight of a checkpoint that a rank has."""

    index: int  # of the parameter
    at: int  # first row in the shard
    first: int  # first row in the weight
    rows: int
    shape: tuple[int, ...]  # of the weight


class ShardedLearner(Learner):
    """A learner of a model that is divided among the ranks."""

    def __init__(self, source: Model, ranks: Ranks, device: str, *, optimizer_state: str = "device") -> None:
        """Create a learner with the weights of rank 0's source."""
        wide = torch.float64 if source.dtype == torch.float64 else torch.float32
        self._shards = Shards(source.config, ranks, device, wide, source.dtype)
        super().__init__(self._shards.model, optimizer_state=optimizer_state, ranks=ranks)
        self._dtype = source.dtype
        self._holds: bool | None = None
        self._rows = self._shards.places()
        self._shards.scatter(source)

    @property
    def holds(self) -> bool:
        """Whether whole weights and gradients stay on each device for an update."""
        if self._holds is None:
            free = torch.cuda.mem_get_info(self.model.device)[0] if self._compiled else 4 * self._whole
            self.holds = self._ranks.least(int(4 * self._whole <= free)) == 1
        return bool(self._holds)

    @holds.setter
    def holds(self, holds: bool) -> None:
        self._holds = holds
        self._shards.hold(holds)

    @property
    def _whole(self) -> int:
        """The bytes of whole weights and of the sums of their gradients."""
        each = self._dtype.itemsize + self._wide.itemsize
        return each * sum(p.numel() for p in self._shards.skeleton.parameters())

    def take_weights(self, source: Model) -> None:
        self._shards.scatter(source)

    def give_weights(self, into: Model) -> bool:
        self._shards.gather(into)
        return True

    def rows(self, name: str) -> slice:
        place = self._rows.get(name)
        return slice(place.first, place.first + place.rows) if place else slice(0, 0)

    def optimizer_tensors(self) -> dict[str, torch.Tensor | Rows] | None:
        """Return the rows of this rank."""
        found = super().optimizer_tensors()
        if found is None:
            return None
        out: dict[str, torch.Tensor | Rows] = {}
        for name, tensor in found.items():
            place = self._rows.get(name.partition(".")[2])
            out[name] = tensor if place is None or isinstance(tensor, Rows) else Rows(tensor, place.first, place.shape)
        return out

    def _places(self) -> dict[str, tuple[int, int, int]]:
        return {name: (p.index, p.at, p.rows) for name, p in self._rows.items()}

    def _forget(self, model: Model) -> None:
        for part in model.modules():
            if isinstance(part, FSDPModule):
                part.reshard()

    def _begin_pass(self, last: bool) -> None:
        self._shards.sum_after_pass(last or not self.holds)

    def _abandon(self) -> None:
        self._begin_pass(True)  # frees the sums so far
        self._pass_nothing()

    def _head_total(self, head: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(head, dtype=self._wide)

    def _propagate(self, hidden: torch.Tensor, gradient: torch.Tensor, head: torch.Tensor, total: torch.Tensor | None) -> None:
        assert total is not None
        torch.autograd.backward([hidden, head], [gradient, total.to(head.dtype)])

    def _make_optimizer(self) -> optimizer.AdamW:
        if self._optimizer is None:
            self._optimizer = self._kind(self._shards.local, self._wide)
        return self._optimizer

    def _sum_gradients(self) -> None:
        for parameter, shard in zip(self._shards.parameters, self._shards.local, strict=True):
            self._gradients.append(torch.zeros_like(shard) if parameter.grad is None else _local(parameter.grad))

    def _norm(self, norms: torch.Tensor) -> torch.Tensor:
        return self._ranks.sum(norms.square().sum()).sqrt()

    def _clear(self) -> None:
        self._shards.reshard()
        for parameter in self._shards.parameters:
            parameter.grad = None
        self._gradients = []

    def _room(self) -> int:
        c = self.model.config
        shard = sum(p.numel() for p in self._shards.local)
        layer = sum(p.numel() for p in self._shards.skeleton.blocks[0].parameters())
        room = -4 * shard  # gradients
        if self._optimizer is None:
            room -= self._kind.state_bytes * shard
        if self.holds:
            return room - self._whole - 10 * c.vocabulary * c.hidden
        # The layers that are whole, the sums of their gradients, and the same of the embeddings.
        return room - 24 * layer - (2 if c.tied else 4) * 5 * c.vocabulary * c.hidden


def _local(tensor: torch.Tensor) -> torch.Tensor:
    """Return the rows of this rank."""
    shards: Any = tensor.detach()
    rows: torch.Tensor = shards.to_local()
    return rows
