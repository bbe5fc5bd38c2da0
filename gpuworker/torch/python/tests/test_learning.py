"""Tests of log-probs, losses, gradients and optimizer steps."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
import reference
import torch
from conftest import ARCHITECTURES, model

from codea1_torch.errors import BadRequest, Cancelled, Diverged
from codea1_torch.learning import Learner, Sequence, UpdateConfig
from codea1_torch.model import Model


def sequences(m: Model, *, references: bool = True, weights: bool = False, seed: int = 3) -> list[Sequence]:
    """Return sequences with ratios inside and far outside of all bounds."""
    rng = random.Random(seed)
    out = []
    for i, (prompt, response) in enumerate(((3, 5), (1, 9), (20, 4), (6, 12), (2, 1))):
        text = [rng.randrange(m.config.vocabulary) for _ in range(prompt + response)]
        s = Sequence(text[:prompt], text[prompt:], None, None, (-1.0) ** i * (1 + rng.random()))
        p = Learner(m).log_probs(m, [s], 0.8)[0]
        old = [v + rng.choice([0.0, 0.05, -0.05, 0.1, -0.1, 0.15, -0.15, 0.5, -0.5, 3.0, -30.0, 30.0]) for v in p]
        ref = [v + rng.choice([0.0, 0.5, -0.5, 25.0, -25.0]) for v in p]
        counts = [rng.random() * 2 for _ in p] if weights else None
        out.append(replace(s, old_probs=old, ref_probs=ref if references else None, weights=counts))
    return out


CONFIG = UpdateConfig(kl_coef=0.01, temperature=0.8, learning_rate=1e-3, weight_decay=0.1, grad_clip=0)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize(
    ("config", "weights"),
    [(CONFIG, False), (CONFIG, True), (replace(CONFIG, dual_clip=0), False), (replace(CONFIG, loss="sft"), False)],
)
def test_update_is_step_ten(architecture: str, config: UpdateConfig, weights: bool) -> None:
    """Loss, statistics and gradients equal an independent float64 implementation to 1e-6."""
    m = model("cpu", torch.float64, architecture)
    batch = sequences(m, weights=weights)
    tensors = {name: t.clone().requires_grad_() for name, t in m.tensors()}
    want, terms = reference.loss(tensors, m.config, batch, config)
    want.backward()
    norm = torch.stack([t.grad.norm() for t in tensors.values() if t.grad is not None]).norm().item()

    learner = Learner(m, micro_tokens=32)
    gradients = capture_gradients(learner)
    stats = learner.update(batch, config)
    assert stats.loss == pytest.approx(want.item(), rel=1e-6)
    assert stats.grad_norm == pytest.approx(norm, rel=1e-6)
    assert stats.entropy == pytest.approx(terms["entropy"], rel=1e-6)
    assert stats.ratio_mean == pytest.approx(terms["ratio"], rel=1e-6)
    assert stats.clip_fraction == pytest.approx(terms["clipped"], abs=1e-12)
    if config.loss == "ppo":
        assert stats.kl == pytest.approx(terms["kl"], rel=1e-6)
        assert 0 < stats.clip_fraction < 1
    for name, weight in tensors.items():
        assert weight.grad is not None
        difference = (gradients[name] - weight.grad).norm() / weight.grad.norm().clamp(min=1e-300)
        assert difference < 1e-6, (name, float(difference))


def capture_gradients(learner: Learner) -> dict[str, torch.Tensor]:
    """Return a dictionary that the next update fills with its gradients."""
    out: dict[str, torch.Tensor] = {}
    step = learner._step

    def spy(config: UpdateConfig) -> None:
        for name, (i, first, rows) in learner._places().items():
            out[name] = learner._gradients[i].narrow(0, first, rows).clone()
        step(config)

    learner._step = spy  # type: ignore[method-assign]
    return out


def test_adamw() -> None:
    """Three steps equal AdamW written out: decay on matrices only, clipping by the global norm."""
    m = model("cpu", torch.float64)
    learner = Learner(m)
    config = replace(CONFIG, grad_clip=0.01, beta1=0.8, beta2=0.95, epsilon=1e-6)
    batch = sequences(m)
    first = {n: torch.zeros_like(t) for n, t in m.tensors()}
    second = {n: torch.zeros_like(t) for n, t in m.tensors()}
    for step in range(1, 4):
        before = {n: t.clone() for n, t in m.tensors()}
        gradients = capture_gradients(learner)
        stats = learner.update(batch, config)
        norm = torch.stack([g.norm() for g in gradients.values()]).norm()
        assert stats.grad_norm > 0.01 and norm == pytest.approx(0.01, rel=1e-9)
        for name, now in m.tensors():
            g = gradients[name]
            first[name] = 0.8 * first[name] + 0.2 * g
            second[name] = 0.95 * second[name] + 0.05 * g * g
            decay = 0.1 if now.dim() == 2 else 0.0
            want = before[name] * (1 - 1e-3 * decay)
            want -= 1e-3 * (first[name] / (1 - 0.8**step)) / ((second[name] / (1 - 0.95**step)).sqrt() + 1e-6)
            torch.testing.assert_close(now, want, rtol=1e-7, atol=1e-12)


def test_packed_equals_unpacked(device: str) -> None:
    """Log-probs and gradients do not depend on how sequences are packed."""
    batch = sequences(model("cpu"))
    results = []
    for micro in (1, 64, 4096):
        m = model(device)
        learner = Learner(m, micro_tokens=micro)
        gradients = capture_gradients(learner)
        logs = learner.log_probs(m, batch, 0.8)
        results.append((logs, learner.update(batch, CONFIG), gradients))
    logs, stats, gradients = results[0]
    for other_logs, other_stats, other in results[1:]:
        for a, b in zip(logs, other_logs, strict=True):
            assert a == pytest.approx(b, abs=1e-5)
        assert other_stats.loss == pytest.approx(stats.loss, rel=1e-5)
        for name, g in gradients.items():
            assert float((other[name] - g).norm() / g.norm()) < 1e-4, name


def test_recomputation_changes_nothing(device: str) -> None:
    """Recomputed activations give the same gradients."""
    batch = sequences(model("cpu"))
    stats = [Learner(model(device), recompute_every=n).update(batch, CONFIG) for n in (0, 1, 2)]
    for s in stats[1:]:
        assert s.grad_norm == pytest.approx(stats[0].grad_norm, rel=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_same_calls_same_weights(device: str, dtype: torch.dtype) -> None:
    """Two learners that do the same have the same weights bit for bit, also through a saved optimizer."""
    batch = sequences(model("cpu"))
    straight = model(device, dtype)
    learner = Learner(straight)
    for part in (batch[:2], batch[2:], batch):
        learner.update(part, CONFIG)

    resumed = model(device, dtype)
    first = Learner(resumed)
    first.update(batch[:2], CONFIG)
    saved = first.optimizer_tensors()
    assert saved is not None and int(saved["step"]) == 1
    second = Learner(resumed)
    second.load_optimizer({k: v.clone() for k, v in saved.items()})
    for part in (batch[2:], batch):
        second.update(part, CONFIG)
    for (name, a), (_, b) in zip(straight.tensors(), resumed.tensors(), strict=True):
        assert torch.equal(a, b), name


def test_small_steps_are_not_lost_in_bfloat16(device: str) -> None:
    """Steps below the resolution of bfloat16 add up in the float32 masters."""
    m = model(device, torch.bfloat16)
    before = {n: t.clone() for n, t in m.tensors()}
    batch = [Sequence([1, 2], [3, 4, 5])]
    learner = Learner(m)
    for _ in range(60):
        learner.update(batch, UpdateConfig(loss="sft", learning_rate=2e-5))
    moved = [n for n, t in m.tensors() if not torch.equal(t, before[n])]
    assert len(moved) > len(before) // 2


def test_failed_updates_change_nothing(device: str) -> None:
    """A cancelled, invalid or diverged update leaves weights and optimizer as they were."""
    m = model(device)
    learner = Learner(m, micro_tokens=16)
    batch = sequences(model("cpu"))
    learner.update(batch, CONFIG)
    weights = {n: t.clone() for n, t in m.tensors()}
    calls = iter([False, True])
    with pytest.raises(Cancelled):
        learner.update(batch, CONFIG, cancelled=lambda: next(calls))
    for bad, message in (
        ([replace(batch[0], tokens=[300] * 5)], "vocabulary"),
        ([replace(batch[0], old_probs=[0.0])], "old log-probs"),
        ([replace(batch[0], old_probs=[math.nan] * 5)], "finite"),
        ([batch[0], replace(batch[1], ref_probs=None)], "reference"),
        ([batch[0], replace(batch[1], weights=[1.0])], "weights"),
        ([replace(batch[0], weights=[math.inf] * 5)], "finite"),
        ([replace(batch[0], prompt=[])], "prompt"),
        ([replace(batch[0], advantage=math.inf)], "advantage"),
        ([replace(batch[0], prompt=[1] * 600)], "positions"),
        ([Sequence([1], [])], "no response"),
        ([], "no response"),
    ):
        with pytest.raises(BadRequest, match=message):
            learner.update(bad, CONFIG)
    for name, t in m.tensors():
        assert torch.equal(t, weights[name]), name
    learner.update(batch, CONFIG)
    again = model(device)
    twice = Learner(again, micro_tokens=16)
    twice.update(batch, CONFIG)
    twice.update(batch, CONFIG)
    for (name, a), (_, b) in zip(m.tensors(), again.tensors(), strict=True):
        assert torch.equal(a, b), name


def test_divergence(device: str) -> None:
    """Weights that are not finite are an error of their own, and no step is taken."""
    m = model(device)
    batch = sequences(model("cpu"))
    with torch.no_grad():
        m.embedding[batch[0].prompt[0]] = math.inf
    before = m.blocks[0].qkv.detach().clone()
    learner = Learner(m)
    with pytest.raises(Diverged):
        learner.update(batch, CONFIG)
    with pytest.raises(Diverged):
        learner.log_probs(m, batch, 1.0)
    assert torch.equal(m.blocks[0].qkv, before)
