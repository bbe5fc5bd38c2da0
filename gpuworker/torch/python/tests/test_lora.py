"""Tests of LoRA against autograd in float64, against peft and transformers, and through checkpoints."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
import reference
import torch
from conftest import ARCHITECTURES, model
from safetensors.torch import load_file, save_file
from shipped import TEST
from test_engine import CONFIG as ENGINE_CONFIG
from test_engine import go, tokens
from test_learning import CONFIG, sequences

from codea1_torch.engine import Engine, Options
from codea1_torch.errors import BadRequest, Mismatch
from codea1_torch.learning import Learner, Sequence
from codea1_torch.lora import TARGETS, Adapter, Lora

LORA = Lora(rank=3, alpha=6.0)
OPTIONS = Options(lora=LORA)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("targets", [TARGETS, ("q_proj", "down_proj")])
def test_gradients_and_steps_of_an_adapter(architecture: str, targets: tuple[str, ...]) -> None:
    """Gradients of A and B equal autograd's through base + 2 B A, and two steps of AdamW move them as written out."""
    base = model("cpu", torch.float64, architecture)
    trained = model("cpu", torch.float64, architecture)
    adapter = Adapter(trained, base, replace(LORA, targets=targets))
    generator = torch.Generator().manual_seed(5)
    for weight in adapter.weights:
        weight.normal_(std=0.05, generator=generator)
    adapter.merge()
    batch = sequences(trained)
    learner = Learner(trained, micro_tokens=32, adapter=adapter)
    config = replace(CONFIG, beta1=0.8, beta2=0.95, epsilon=1e-6)
    names = list(adapter.places())
    assert sorted({n.split(".")[-3] for n in names}) == sorted(targets)
    first = second = dict.fromkeys(names, torch.zeros((), dtype=torch.float64))
    for step in (1, 2):
        parts = {n: w.clone().requires_grad_() for n, w in zip(names, adapter.weights, strict=True)}
        merged = {}
        for name, tensor in base.tensors():
            at = name.removesuffix("weight")
            changed = at + "lora_A.weight" in parts
            merged[name] = tensor + 2.0 * parts[at + "lora_B.weight"] @ parts[at + "lora_A.weight"] if changed else tensor
        want, terms = reference.loss(merged, trained.config, batch, config)
        want.backward()
        stats = learner.update(batch, config)
        gradients = {n: p.grad for n, p in parts.items()}
        norm = torch.stack([g.norm() for g in gradients.values() if g is not None]).norm()
        assert stats.loss == pytest.approx(want.item(), rel=1e-9)
        assert stats.kl == pytest.approx(terms["kl"], rel=1e-9)
        assert stats.grad_norm == pytest.approx(norm.item(), rel=1e-9)
        for (name, g), now in zip(gradients.items(), adapter.weights, strict=True):
            assert g is not None
            first = {**first, name: 0.8 * first[name] + 0.2 * g}
            second = {**second, name: 0.95 * second[name] + 0.05 * g * g}
            moved = parts[name].detach() * (1 - 1e-3 * 0.1)
            moved -= 1e-3 * (first[name] / (1 - 0.8**step)) / ((second[name] / (1 - 0.95**step)).sqrt() + 1e-6)
            torch.testing.assert_close(now, moved, rtol=1e-7, atol=1e-12)


def test_only_the_adapter_is_trained(tmp_path: Path, device: str) -> None:
    """Other weights keep their bits, and the model holds base + adapter in its own type."""
    base, m = model(device, torch.bfloat16), model(device, torch.bfloat16)
    adapter = Adapter(m, base, replace(LORA, targets=("v_proj", "up_proj")))
    learner = Learner(m, adapter=adapter)
    batch = [Sequence([1, 2], [3, 4, 5])]
    losses = [learner.update(batch, replace(CONFIG, loss="sft", learning_rate=1e-2)).loss for _ in range(20)]
    assert losses[-1] < losses[0] - 1
    before, after = dict(base.tensors()), dict(m.tensors())
    for name in before:
        changed = name.split(".")[-2] in ("v_proj", "up_proj") and name.endswith("weight")
        assert torch.equal(before[name], after[name]) != changed, name
    a, b = adapter.weights[:2]
    name = next(iter(adapter.places())).replace("lora_A.weight", "weight")
    assert torch.equal(after[name], (before[name].float() + 2.0 * (b @ a)).bfloat16())
    assert all(p.grad is None for p in m.parameters())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_training_of_an_adapter_continues_from_a_checkpoint(tmp_path: Path, device: str, dtype: torch.dtype) -> None:
    through = Engine(TEST, device, dtype, OPTIONS)
    _, batch = go(through)
    for name in ("middle", "through", "resumed"):
        (tmp_path / name).mkdir()
    through.load(TEST)
    through.update(batch, ENGINE_CONFIG, lambda: False)
    through.save(tmp_path / "middle")
    through.update(batch, ENGINE_CONFIG, lambda: False)
    through.save(tmp_path / "through")
    resumed = Engine(TEST, device, dtype, OPTIONS)
    resumed.load(tmp_path / "middle")
    resumed.update(batch, ENGINE_CONFIG, lambda: False)
    resumed.save(tmp_path / "resumed")
    for name in ("model.safetensors", "adapter/adapter_model.safetensors", "adapter/optimizer.safetensors"):
        assert (tmp_path / "through" / name).read_bytes() == (tmp_path / "resumed" / name).read_bytes(), name
        assert (tmp_path / "through" / name).read_bytes() != (tmp_path / "middle" / name).read_bytes(), name
    # Sampler and learner share the merged weights, and an engine without LoRA samples the same.
    resumed.load_weights(tmp_path / "resumed")
    assert resumed._own is None
    plain = Engine(tmp_path / "resumed", device, dtype)
    assert tokens(go(plain)[1]) == tokens(go(resumed)[1])
    # Back at the start, the adapter changes nothing.
    resumed.load(TEST)
    assert resumed.log_probs(False, batch, 1.0, lambda: False) == Engine(TEST, device, dtype).log_probs(False, batch, 1.0, lambda: False)


def test_the_base_is_the_reference(tmp_path: Path, device: str) -> None:
    engine = Engine(TEST, device, options=OPTIONS)
    engine.load(TEST)
    engine.load_reference(TEST)
    assert engine._reference is engine._base
    _, batch = go(engine)
    before = engine.log_probs(True, batch, 1.0, lambda: False)
    engine.update(batch, ENGINE_CONFIG, lambda: False)
    assert engine.log_probs(True, batch, 1.0, lambda: False) == before
    assert engine.log_probs(False, batch, 1.0, lambda: False) != before
    (tmp_path / "v1").mkdir()
    engine.save(tmp_path / "v1")
    engine.load_reference(tmp_path / "v1")  # another one does not overwrite the base
    engine.load(TEST)
    assert engine.log_probs(False, batch, 1.0, lambda: False) == before


def test_peft_and_transformers_open_both_forms(tmp_path: Path) -> None:
    """Base with adapter, in peft, and the merged checkpoint, in transformers, give the engine's log-probs."""
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    engine = Engine(TEST, "cpu", options=OPTIONS)
    engine.load(TEST)
    prompt, batch = go(engine)
    for _ in range(3):
        engine.update(batch, replace(ENGINE_CONFIG, learning_rate=1e-2), lambda: False)
    out = tmp_path / "out"
    out.mkdir()
    engine.save(out)
    want = torch.tensor(engine.log_probs(False, batch[:1], 1.0, lambda: False)[0])
    text = torch.tensor([prompt + batch[0].tokens])
    base = AutoModelForCausalLM.from_pretrained(TEST, dtype=torch.float32)
    before = base(text).logits[0].log_softmax(-1)
    for opened in (PeftModel.from_pretrained(base, out / "adapter"), AutoModelForCausalLM.from_pretrained(out, dtype=torch.float32)):
        with torch.no_grad():
            scores = opened(text).logits[0].log_softmax(-1)[len(prompt) - 1 : -1]
        got = scores.gather(1, text[0, len(prompt) :, None])[:, 0]
        torch.testing.assert_close(got, want, rtol=0, atol=1e-4)
    assert (before[len(prompt) - 1 : -1].gather(1, text[0, len(prompt) :, None])[:, 0] - want).abs().max() > 1e-2


def test_checkpoints_of_other_adapters_are_refused(tmp_path: Path) -> None:
    engine = Engine(TEST, "cpu", options=OPTIONS)
    engine.load(TEST)
    _, batch = go(engine)
    engine.update(batch, ENGINE_CONFIG, lambda: False)
    (tmp_path / "lora").mkdir()
    engine.save(tmp_path / "lora")
    plain = Engine(TEST, "cpu")
    plain.update(batch, ENGINE_CONFIG, lambda: False)
    (tmp_path / "plain").mkdir()
    plain.save(tmp_path / "plain")
    with pytest.raises(Mismatch, match="has no adapter"):
        engine.load(tmp_path / "plain")
    for lora, message in ((Lora(2, 6.0), "r of"), (Lora(3, 5.0), "lora_alpha"), (Lora(3, 6.0, ("q_proj",)), "other matrices")):
        with pytest.raises(Mismatch, match=message):
            Engine(TEST, "cpu", options=Options(lora=lora)).load(tmp_path / "lora")
    path = tmp_path / "lora" / "adapter" / "adapter_model.safetensors"
    save_file({n: t + 0.1 for n, t in load_file(path).items()}, path)
    with pytest.raises(Mismatch, match="do not add up"):
        engine.load(tmp_path / "lora")


@pytest.mark.parametrize("lora", [Lora(0, 1.0), Lora(2, 0.0), Lora(2, float("nan")), Lora(2, 1.0, ()), Lora(2, 1.0, ("lm_head",))])
def test_impossible_adapters_are_refused(lora: Lora) -> None:
    with pytest.raises(BadRequest, match="LoRA"):
        Engine(TEST, "cpu", options=Options(lora=lora))


def test_a_missing_peft_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(BadRequest, match=r"pip install .*\[peft\]"):
        Engine(TEST, "cpu", options=OPTIONS)
    Engine(TEST, "cpu")
