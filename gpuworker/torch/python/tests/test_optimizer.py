"""Tests of the places where the optimizer's state is kept."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from conftest import model
from test_learning import CONFIG, sequences

from codea1_torch import optimizer
from codea1_torch.learning import Learner, Sequence, UpdateConfig
from codea1_torch.model import Model


def trained(device: str, dtype: torch.dtype, kind: str, steps: int = 3) -> tuple[Model, Learner]:
    m = model(device, dtype)
    learner = Learner(m, optimizer_state=kind)
    for seed in range(steps):
        learner.update(sequences(model("cpu"), seed=seed), replace(CONFIG, grad_clip=1.0))
    return m, learner


def state(learner: Learner) -> dict[str, torch.Tensor]:
    found = learner.optimizer_tensors()
    assert found is not None
    return {name: t.clone() for name, t in found.items()}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_offloaded_state_gives_the_same_weights(device: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the state is, and in how many chunks a step takes it, changes no bit."""
    m, resident = trained(device, dtype, "device")
    monkeypatch.setattr(optimizer, "CHUNK", 1024)
    other, offloaded = trained(device, dtype, "cpu")
    for (name, a), (_, b) in zip(m.tensors(), other.tensors(), strict=True):
        assert torch.equal(a, b), name
    have, want = state(offloaded), state(resident)
    assert have.keys() == want.keys()
    for name in want:
        assert torch.equal(have[name], want[name].cpu()), name
    assert all(not t.is_cuda for n, t in have.items() if n[:2] in ("m.", "v.") or n.startswith("master."))


@pytest.mark.parametrize("kind", optimizer.KINDS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_training_continues_from_saved_state(device: str, kind: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """A learner that loads the state of another one takes the same steps, bit for bit."""
    monkeypatch.setattr(optimizer, "CHUNK", 4096)
    m, learner = trained(device, dtype, kind)
    again = Model(m.config, device=device, dtype=dtype)
    again.load_state_dict(m.state_dict())
    second = Learner(again, optimizer_state=kind)
    second.load_optimizer(state(learner))
    for part in (learner, second):
        part.update(sequences(model("cpu"), seed=9), CONFIG)
    for (name, a), (_, b) in zip(m.tensors(), again.tensors(), strict=True):
        assert torch.equal(a, b), name


def test_levels_are_near_and_fair(device: str) -> None:
    """A stored value is a level beside the value, and the mean over many roundings is the value."""
    generator = torch.Generator(device).manual_seed(1)
    values = torch.randn(1000, device=device, generator=generator) * 10 ** torch.randn(1000, device=device, generator=generator)
    values[300:600] = 0
    for count, decades, kept in ((127, 4, values), (255, 8, values.square())):
        blocks = optimizer._Blocks(kept, optimizer._levels(count, decades, kept.device, kept.dtype))
        rows = slice(0, len(kept))
        largest = torch.nn.functional.pad(kept.abs(), (0, 24)).view(-1, 256).amax(1).repeat_interleave(256)[:1000]
        ratio = 10 ** (decades / (count - 1))
        total, n = torch.zeros_like(kept), 400
        for _ in range(n):
            blocks.write(rows, kept, generator)
            read = blocks.read(rows)
            assert torch.all((read - kept).abs() <= (ratio - 1) * kept.abs() * 1.0001 + 10.0**-decades * largest * 1.0001)
            assert torch.all((read == 0) | (read.sign() == kept.sign()))
            total += read
        # The mean of n roundings between two levels, which are at most ratio - 1 apart, is 6 deviations away at most.
        fair = (total / n - kept).abs() <= 6 * (ratio - 1) * kept.abs() / (2 * n**0.5) + 2 * 10.0**-decades * largest
        assert torch.all(fair), int((~fair).sum())
        blocks.write(rows, kept, None)
        once = blocks.read(rows)
        blocks.write(rows, once, None)
        assert torch.equal(blocks.read(rows), once)  # a saved state comes back
    assert torch.all(blocks.read(rows)[kept > 0] > 0)


def test_slow_changes_of_8_bit_moments_are_not_lost() -> None:
    """A mean that moves by a thousandth at a time arrives, which the nearest level would not."""
    kept = torch.ones(512)
    blocks = optimizer._Blocks(kept, optimizer._levels(255, 8, kept.device, kept.dtype))
    goal = torch.linspace(0.1, 0.9, 512)
    goal[::256] = 1.0  # keeps the scale of its block
    blocks.write(slice(0, 512), kept, None)
    generator = torch.Generator().manual_seed(2)
    for _ in range(3000):
        blocks.write(slice(0, 512), blocks.read(slice(0, 512)).lerp(goal, 0.001), generator)
    left = blocks.read(slice(0, 512)).mean() - goal.mean()
    assert abs(float(left)) < 0.25 * float((kept - goal).mean())


def test_8_bit_moments_learn(device: str) -> None:
    """The loss falls as with float32 moments, within a tenth of the fall."""
    batch = [Sequence([1, 2, i], [3 + i, 40 + 2 * i, 5, 7 * i % 300]) for i in range(8)]
    config = UpdateConfig(loss="sft", learning_rate=1e-3)
    losses = {}
    for kind in ("device", "8bit"):
        learner = Learner(model(device), optimizer_state=kind)
        losses[kind] = [learner.update(batch, config).loss for _ in range(40)]
    fall = losses["device"][0] - losses["device"][-1]
    assert fall > 1
    assert losses["8bit"][-1] == pytest.approx(losses["device"][-1], abs=0.1 * fall)


def test_8_bit_state_is_small() -> None:
    """The moments of a matrix take a byte each, and a scale for each block."""
    _, learner = trained("cpu", torch.float32, "8bit", steps=1)
    assert isinstance(learner._optimizer, optimizer.QuantizedAdamW)
    for parameter, kept in zip(learner.model.parameters(), learner._optimizer._kept, strict=True):
        if parameter.dim() == 2:
            used = sum(t.nbytes for k in kept for t in (k._codes, k._scales))  # type: ignore[union-attr]
            assert used <= 2.04 * parameter.numel()
