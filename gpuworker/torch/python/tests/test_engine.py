import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from shipped import TEST

from codea1_torch import checkpoint
from codea1_torch.engine import Engine, Options, choose_device
from codea1_torch.errors import BadRequest, Diverged, Mismatch, MissingCheckpoint, NoReference, OutOfMemory, PromptTooLong
from codea1_torch.learning import Sequence, UpdateConfig, UpdateStats
from codea1_torch.sampling import Params, Request

PARAMS = Params(temperature=1.0, top_p=1.0, top_k=0, max_tokens=12)
CONFIG = UpdateConfig(
    loss="ppo",
    clip_low=0.2,
    clip_high=0.28,
    dual_clip=10.0,
    log_ratio_clamp=20.0,
    kl_coef=0.0,
    temperature=1.0,
    learning_rate=1e-3,
    weight_decay=0.1,
    beta1=0.9,
    beta2=0.999,
    epsilon=1e-8,
    grad_clip=1.0,
)


def go(engine: Engine) -> tuple[list[int], list[Sequence]]:
    prompt = engine.encode_prompt([{"role": "user", "content": "Return xs."}])
    rows = engine.sample([Request(prompt, [1, 2, 3])], PARAMS, lambda: False, lambda done: None)
    return prompt, [Sequence(prompt, c.tokens, c.log_probs, None, float(1 - i)) for i, c in enumerate(rows[0])]


def tokens(sequences: list[Sequence]) -> list[list[int]]:
    return [s.tokens for s in sequences]


def copy(to: Path, **changes: object) -> Path:
    shutil.copytree(TEST, to)
    config = json.loads((to / "config.json").read_text())
    (to / "config.json").write_text(json.dumps({**config, **changes}))
    return to


def test_sampler_and_learner_share_weights_until_they_differ(tmp_path: Path, device: str) -> None:
    engine = Engine(TEST, device)
    _, before = go(engine)
    engine.load(TEST)
    engine.load_weights(TEST)
    assert engine._own is None
    engine.update(before, CONFIG, lambda: False)
    assert tokens(go(engine)[1]) == tokens(before)
    assert engine._own is not None
    first = tmp_path / "v1"
    first.mkdir()
    engine.save(first)
    assert tokens(go(engine)[1]) == tokens(before)
    renamed = first.rename(tmp_path / "renamed")
    engine.load_weights(renamed)
    assert engine._own is None
    after = tokens(go(engine)[1])
    assert after == tokens(go(Engine(renamed, device))[1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_training_continues_from_a_checkpoint(tmp_path: Path, device: str, dtype: torch.dtype) -> None:
    through = Engine(TEST, device, dtype)
    _, sequences = go(through)
    through.update(sequences, CONFIG, lambda: False)
    for name in ("middle", "through", "resumed"):
        (tmp_path / name).mkdir()
    through.save(tmp_path / "middle")
    through.update(sequences, CONFIG, lambda: False)
    through.save(tmp_path / "through")
    resumed = Engine(TEST, device, dtype)
    resumed.load(tmp_path / "middle")
    resumed.update(sequences, CONFIG, lambda: False)
    resumed.save(tmp_path / "resumed")
    names = ["model.safetensors", "optimizer.safetensors"]
    if dtype != torch.float32:
        names.append("masters.safetensors")
    for name in names:
        assert (tmp_path / "through" / name).read_bytes() == (tmp_path / "resumed" / name).read_bytes(), name
        assert (tmp_path / "through" / name).read_bytes() != (tmp_path / "middle" / name).read_bytes(), name


def test_a_deleted_checkpoint_is_not_sampled_from(tmp_path: Path) -> None:
    start = copy(tmp_path / "start")
    engine = Engine(start, "cpu")
    engine.load(start)
    _, sequences = go(engine)
    engine.update(sequences, CONFIG, lambda: False)
    (start / "model.safetensors").unlink()
    with pytest.raises(MissingCheckpoint):
        go(engine)
    shutil.copyfile(TEST / "model.safetensors", start / "model.safetensors")
    with pytest.raises(MissingCheckpoint, match="another checkpoint"):
        go(engine)


@pytest.mark.parametrize("kind", ["cpu", "8bit"])
def test_optimizer_state_elsewhere_continues_from_a_checkpoint(tmp_path: Path, device: str, kind: str) -> None:
    options = Options(optimizer_state=kind)
    through, resumed = Engine(TEST, device, options=options), Engine(TEST, device, options=options)
    _, sequences = go(through)
    for name in ("middle", "through", "resumed", "plain"):
        (tmp_path / name).mkdir()
    through.update(sequences, CONFIG, lambda: False)
    through.save(tmp_path / "middle")
    resumed.load(tmp_path / "middle")
    for engine, name in ((through, "through"), (resumed, "resumed")):
        engine.update(sequences, CONFIG, lambda: False)
        engine.save(tmp_path / name)
    plain = Engine(TEST, device)
    plain.load(tmp_path / "middle")  # every kind reads the files of the others
    plain.update(sequences, CONFIG, lambda: False)
    plain.save(tmp_path / "plain")
    for name in ("model.safetensors", "optimizer.safetensors"):
        through_bytes = (tmp_path / "through" / name).read_bytes()
        assert through_bytes == (tmp_path / "resumed" / name).read_bytes(), name
        exact = kind == "cpu" or name == "model.safetensors"  # the moments that a step starts from are the same
        assert (through_bytes == (tmp_path / "plain" / name).read_bytes()) == exact, name


def test_a_reference_in_main_memory_gives_the_same_log_probs(tmp_path: Path, device: str) -> None:
    here, away = Engine(TEST, device), Engine(TEST, device, options=Options(reference="cpu"))
    _, sequences = go(here)
    for engine in (here, away):
        engine.load_reference(TEST)
        engine.update(sequences, CONFIG, lambda: False)  # does not move the reference
    assert away._reference is not None and away._reference.device.type == "cpu"
    found = [engine.log_probs(True, sequences, 1.0, lambda: False) for engine in (here, away)]
    assert found[0] == found[1] != away.log_probs(False, sequences, 1.0, lambda: False)
    (tmp_path / "moved").mkdir()
    away.save(tmp_path / "moved")
    away.load_reference(tmp_path / "moved")  # into the memory of the one before
    assert away.log_probs(True, sequences, 1.0, lambda: False) == away.log_probs(False, sequences, 1.0, lambda: False)


def test_moved_weights_are_those_of_the_model() -> None:
    engine = Engine(TEST, "cpu")
    assert engine._model.moved("cpu") is engine._model
    there = engine._model.moved("meta")
    assert there.device.type == "meta" and there.state_dict().keys() == engine._model.state_dict().keys()


@pytest.mark.parametrize("options", [Options(optimizer_state="disk"), Options(reference="gpu")])
def test_unknown_places_are_refused(options: Options) -> None:
    with pytest.raises(BadRequest, match="unknown"):
        Engine(TEST, "cpu", options=options)


class Full:
    """Work that does not fit into memory above a limit."""

    def __init__(self, limit: int, size: Callable[[], int], run: Callable[..., object]) -> None:
        self.limit, self.size, self.run, self.failed = limit, size, run, 0

    def __call__(self, *arguments: object, **named: object) -> object:
        if self.size() > self.limit:
            self.failed += 1
            raise torch.OutOfMemoryError("CUDA out of memory")
        return self.run(*arguments, **named)


def test_out_of_memory_makes_the_work_smaller(tmp_path: Path) -> None:
    engine, plain = Engine(TEST, "cpu"), Engine(TEST, "cpu")
    _, sequences = go(plain)
    go(engine)
    sampler = engine._sampler
    assert sampler is not None
    full = Full(1, lambda: sampler.slots, sampler.sample)
    sampler.sample = full  # type: ignore[method-assign,assignment]
    assert tokens(go(engine)[1]) == tokens(sequences)
    assert full.failed > 0 and sampler.slots == 1

    learner = engine._ready_learner()
    updates = Full(90, lambda: learner.micro_tokens, learner.update)
    learner.update = updates  # type: ignore[method-assign,assignment]
    many = sequences * 20
    stats, expected = engine.update(many, CONFIG, lambda: False), plain.update(many, CONFIG, lambda: False)
    assert updates.failed > 0 and learner.micro_tokens <= 90
    assert stats.loss == pytest.approx(expected.loss, abs=1e-6)
    assert stats.grad_norm == pytest.approx(expected.grad_norm, rel=1e-5)
    learner.update = Full(0, lambda: 1, learner.update)  # type: ignore[method-assign,assignment]
    with pytest.raises(OutOfMemory):
        engine.update(many, CONFIG, lambda: False)


def test_numbers_that_are_not_finite_are_an_error() -> None:
    engine = Engine(TEST, "cpu")
    _, sequences = go(engine)
    nan = UpdateStats(loss=float("nan"), kl=0, clip_fraction=0, ratio_mean=1, entropy=0, grad_norm=1, tokens=3)
    engine._ready_learner().update = lambda *a, **k: nan  # type: ignore[method-assign]
    with pytest.raises(Diverged):
        engine.update(sequences, CONFIG, lambda: False)


@pytest.mark.parametrize(
    ("params", "prompt", "error"),
    [
        (Params(0.0, 1.0, 0, 1), None, BadRequest),
        (Params(1.0, 0.0, 0, 1), None, BadRequest),
        (Params(1.0, 1.0, -1, 1), None, BadRequest),
        (Params(1.0, 1.0, 0, 0), None, BadRequest),
        (Params(float("nan"), 1.0, 0, 1), None, BadRequest),
        (PARAMS, [], BadRequest),
        (PARAMS, [-1], BadRequest),
        (PARAMS, [768], BadRequest),
        (PARAMS, [1] * 1013, PromptTooLong),
    ],
)
def test_impossible_samplings_are_refused(params: Params, prompt: list[int] | None, error: type[Exception]) -> None:
    engine = Engine(TEST, "cpu")
    with pytest.raises(error):
        engine.sample([Request([1] if prompt is None else prompt, [1])], params, lambda: False, lambda done: None)


def test_impossible_updates_are_refused() -> None:
    engine = Engine(TEST, "cpu")
    good = Sequence([1], [2], [-0.5], None, 1.0)
    for sequences in (
        [],
        [Sequence([1], [], [], None, 1.0)],
        [Sequence([], [2], [-0.5], None, 1.0)],
        [Sequence([1], [2], None, None, 1.0)],
        [Sequence([1], [2], [-0.5], None, float("inf"))],
        [good, Sequence([1], [2], [-0.5], [-0.5], 1.0)],
        [Sequence([1], [5000], [-0.5], None, 1.0)],
        [Sequence([1] * 1000, [2] * 100, [-0.5] * 100, None, 1.0)],
    ):
        with pytest.raises(BadRequest):
            engine.update(sequences, CONFIG, lambda: False)
    with pytest.raises(NoReference):
        engine.log_probs(True, [good], 1.0, lambda: False)


def test_checkpoints_of_other_models_are_refused(tmp_path: Path) -> None:
    engine = Engine(TEST, "cpu")
    other = copy(tmp_path / "theta", rope_theta=5)
    tokenizer = copy(tmp_path / "tokenizer")
    (tokenizer / "tokenizer.json").write_bytes((TEST / "tokenizer.json").read_bytes() + b" ")
    damaged = copy(tmp_path / "damaged")
    weights = (damaged / "model.safetensors").read_bytes()
    (damaged / "model.safetensors").write_bytes(weights[: len(weights) // 2])
    before = tokens(go(engine)[1])
    for load in (engine.load, engine.load_weights, engine.load_reference):
        for directory in (other, tokenizer, damaged):
            with pytest.raises(Mismatch):
                load(directory)
        with pytest.raises(MissingCheckpoint):
            load(tmp_path / "nothing")
    assert tokens(go(engine)[1]) == before
    assert engine.load_weights(copy(tmp_path / "same", torch_dtype="float32", use_cache=False)) is None
    with pytest.raises(Mismatch, match="architectures"):
        Engine(copy(tmp_path / "gpt", architectures=["GPT2LMHeadModel"]), "cpu")


def test_a_smaller_type_keeps_its_masters(tmp_path: Path) -> None:
    state = {"step": torch.tensor([3]), "m.a": torch.ones(2), "v.a": torch.ones(2), "master.a": torch.full((2,), 1 / 3)}
    weights = [("a", torch.full((2,), 1 / 3, dtype=torch.bfloat16))]
    checkpoint.write(tmp_path, iter(weights), state, {"torch_dtype": "float32"}, {})
    assert json.loads((tmp_path / "config.json").read_text()) == {"torch_dtype": "bfloat16"}
    read = checkpoint.read_optimizer(tmp_path)
    assert read is not None
    assert read.keys() == state.keys() and int(read["step"]) == 3
    assert torch.equal(read["master.a"], state["master.a"])


def test_a_large_state_has_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(TEST, "cpu", torch.bfloat16)
    _, sequences = go(engine)
    engine.update(sequences, CONFIG, lambda: False)
    one, many = tmp_path / "one", tmp_path / "many"
    for directory in (one, many):
        directory.mkdir()
        engine.save(directory)
        monkeypatch.setattr(checkpoint, "SHARD_BYTES", 100_000)
    names = sorted(p.name for p in many.glob("*.safetensors"))
    count = len([n for n in names if n.startswith("optimizer-")])
    assert f"optimizer-{count:05d}-of-{count:05d}.safetensors" in names and count > 2 and "optimizer.safetensors" not in names
    for directory in (one, many):  # the sums are those of sha256sum, and every large file has one
        lines = (directory / "SHA256SUMS").read_text().splitlines()
        found = {line.split("  ")[1]: line.split("  ")[0] for line in lines if not line.startswith("#")}
        assert found == {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in directory.glob("*.safetensors")}
        assert {f"# {p.stat().st_size} bytes: {p.name}" for p in directory.glob("*.safetensors")} < set(lines)
    states = [checkpoint.read_optimizer(directory) for directory in (one, many)]
    assert states[0] is not None and states[1] is not None and states[0].keys() == states[1].keys()
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    resumed = Engine(TEST, "cpu", torch.bfloat16)
    resumed.load(many)
    next(many.glob("masters-00001-*")).unlink()
    with pytest.raises(Mismatch, match="missing"):
        resumed.load(many)


def test_devices() -> None:
    assert choose_device("cpu") == "cpu"
    assert choose_device("auto") in ("cpu", "cuda")
    for wrong in ("tpu", "mps", "cuda:99", "cuda:x", ""):
        with pytest.raises(BadRequest, match="device"):
            choose_device(wrong)
