"""Training on several ranks: processes of this machine on the CPU, joined by gloo."""

from __future__ import annotations

import multiprocessing
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from shipped import TEST
from test_engine import CONFIG, go, tokens

from codea1_torch.engine import Engine, Options
from codea1_torch.errors import BadRequest, Cancelled, MissingCheckpoint
from codea1_torch.learning import Sequence, UpdateStats
from codea1_torch.lora import Lora
from codea1_torch.ranks import Ranks, share_out
from codea1_torch.sharding import ShardedLearner

THOROUGH = os.environ.get("CODEA1_TEST_THOROUGH") == "1"
# With AdamW's usual epsilon, a gradient that is only rounding noise moves a weight as far as any other.
UPDATE = replace(CONFIG, kl_coef=0.01, epsilon=1e-4)

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the ranks are forked")


def on_ranks(size: int, directory: Path, work: Callable[[Ranks], None]) -> None:
    """Run work on forked ranks, which have imported everything already."""
    directory.mkdir()

    def run(rank: int) -> None:
        try:
            work(Ranks.join(rank, size, directory / "store", "cpu"))
            code = 0
        except BaseException:
            traceback.print_exc()
            code = 1
        os._exit(code)  # without the handlers of pytest

    context = multiprocessing.get_context("fork")
    ranks = [context.Process(target=run, args=(rank,)) for rank in range(size)]
    for rank in ranks:
        rank.start()
    failed = [number for number, rank in enumerate(ranks) if (rank.join(600), rank.exitcode)[1] != 0]
    for rank in ranks:
        rank.kill()
    assert not failed


def opened(ranks: Ranks | None, dtype: torch.dtype = torch.float32, options: Options | None = None) -> Engine:
    """Return an engine with different numbers of passes on its ranks."""
    engine = Engine(TEST, "cpu", dtype, options, ranks)
    engine.load(TEST)
    engine.load_reference(TEST)
    engine._ready_learner().micro_tokens = 24
    return engine


def train(engine: Engine, sequences: list[Sequence], to: Path) -> UpdateStats:
    """Take one step as a trainer does and save the checkpoint."""
    found = engine.log_probs(True, sequences, 1.0, lambda: False)
    stats = engine.update([replace(s, ref_probs=p) for s, p in zip(sequences, found, strict=True)], UPDATE, lambda: False)
    if engine._ranks.rank == 0:
        to.mkdir()
    engine._ranks.gather(None)
    engine.save(to)
    engine._ranks.gather(None)  # as rank 0 waits for the answers of the others
    return stats


def written(engine: Engine) -> list[Sequence]:
    """Return sequences of different lengths, an odd number of them."""
    _, sampled = go(engine)
    lengths = (12, 3, 9, 12, 1, 12, 5)
    return [
        replace(sampled[i % 3], tokens=sampled[i % 3].tokens[:n], old_probs=(sampled[i % 3].old_probs or [])[:n], advantage=(-1.3) ** i)
        for i, n in enumerate(lengths)
    ]


def assert_same(one: Path, other: Path) -> None:
    """Compare all weights and the optimizer's state of two checkpoints."""
    names = sorted(str(path.relative_to(one)) for path in one.rglob("*.safetensors"))
    assert names == sorted(str(path.relative_to(other)) for path in other.rglob("*.safetensors"))
    for name in names:
        want, got = load_file(one / name), load_file(other / name)
        assert want.keys() == got.keys()
        for key, tensor in want.items():
            torch.testing.assert_close(got[key], tensor, rtol=1e-5, atol=1e-5, msg=lambda text, k=key: f"{k}: {text}")


def assert_close(got: UpdateStats, want: UpdateStats) -> None:
    for field in ("loss", "kl", "clip_fraction", "ratio_mean", "entropy", "grad_norm", "tokens"):
        assert getattr(got, field) == pytest.approx(getattr(want, field), rel=1e-5, abs=1e-6), field


@pytest.mark.parametrize("size", [2, *([3] if THOROUGH else [])])
@pytest.mark.parametrize("kind", ["device", "lora", *(["cpu"] if THOROUGH else [])])
def test_ranks_train_as_one(tmp_path: Path, size: int, kind: str) -> None:
    """Losses, weights and optimizer's state are those of one rank, also from the checkpoint of another number of ranks."""
    if kind == "lora":
        pytest.importorskip("peft")
        options = Options(lora=Lora(2, 4.0))
    else:
        options = Options(optimizer_state=kind)
    alone = opened(None, options=options)
    sequences = written(alone)
    logs = alone.log_probs(False, sequences, 1.0, lambda: False)
    first, second = (train(alone, sequences, tmp_path / f"one-{i}") for i in (1, 2))
    alone.load_weights(tmp_path / "one-2")
    _, sampled = go(alone)

    def together(ranks: Ranks) -> None:
        engine = opened(ranks, options=options)
        for got, want in zip(engine.log_probs(False, sequences, 1.0, lambda: False), logs, strict=True):
            assert got == pytest.approx(want, abs=1e-5)
        assert_close(train(engine, sequences, tmp_path / "many-1"), first)
        asked = iter(range(100))
        with pytest.raises(Cancelled):
            engine.update(sequences, CONFIG, lambda: ranks.rank == 0 and next(asked) == 1)
        assert_close(train(engine, sequences, tmp_path / "many-2"), second)
        engine.load_weights(tmp_path / "many-2")
        if ranks.rank == 0:
            assert tokens(go(engine)[1]) == tokens(sampled)
        with pytest.raises(MissingCheckpoint):
            engine.load(tmp_path / ("nothing" if ranks.rank else "many-1"))
        engine.load(tmp_path / "one-1")
        if isinstance(learner := engine._ready_learner(), ShardedLearner):
            learner.holds = not learner.holds
        assert_close(train(engine, sequences, tmp_path / "resumed-many"), second)

    on_ranks(size, tmp_path / "ranks", together)
    alone.load(tmp_path / "many-1")
    assert_close(train(alone, sequences, tmp_path / "resumed-one"), second)
    assert_same(tmp_path / "one-1", tmp_path / "many-1")
    for name in ("many-2", "resumed-many", "resumed-one"):
        assert_same(tmp_path / "one-2", tmp_path / name)


def test_bfloat16_ranks_keep_their_masters(tmp_path: Path) -> None:
    """A checkpoint of bfloat16 weights continues bit for bit, with the float32 weights of all ranks."""
    alone = opened(None, torch.bfloat16)
    sequences = written(alone)

    def together(ranks: Ranks) -> None:
        engine = opened(ranks, torch.bfloat16)
        for i in (1, 2):
            train(engine, sequences, tmp_path / f"through-{i}")
        engine.load(tmp_path / "through-1")
        train(engine, sequences, tmp_path / "resumed")

    on_ranks(2, tmp_path / "ranks", together)
    for name in ("model", "optimizer", "masters"):
        file = f"{name}.safetensors"
        assert (tmp_path / "resumed" / file).read_bytes() == (tmp_path / "through-2" / file).read_bytes()
    masters = load_file(tmp_path / "through-2" / "masters.safetensors")
    for name, tensor in load_file(tmp_path / "through-2" / "model.safetensors").items():
        assert tensor.dtype == torch.bfloat16 and masters["master." + name].bfloat16().equal(tensor)
    alone.load(tmp_path / "through-1")
    alone.save((tmp_path / "copy").mkdir() or tmp_path / "copy")
    assert (tmp_path / "copy" / "masters.safetensors").read_bytes() == (tmp_path / "through-1" / "masters.safetensors").read_bytes()


def test_what_ranks_cannot_do_is_refused() -> None:
    with pytest.raises(BadRequest, match="--reference"):
        Engine(TEST, "cpu", options=Options(reference="cpu"), ranks=Ranks(0, 2))


def test_shares_are_even() -> None:
    lengths = [200 + 37 * i % 1800 for i in range(100)]
    shares = share_out(lengths, 4)
    assert sorted(i for share in shares for i in share) == list(range(100))
    assert all(share == sorted(share) for share in shares)
    totals = [sum(lengths[i] for i in share) for share in shares]
    assert max(totals) - min(totals) < 200
    assert share_out(lengths, 1) == [list(range(100))]
    assert share_out([], 2) == [[], []]
