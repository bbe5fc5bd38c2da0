import json
import math
from pathlib import Path

import pytest
from safetensors.torch import load_file
from shipped import TEST

from codea1_torch.__main__ import main
from codea1_torch.engine import Engine
from codea1_torch.errors import BadRequest
from codea1_torch.learning import Sequence
from codea1_torch.sft import batches, read_rows

RESPONSE = "def solve(xs):\n    return xs"
ROWS = [
    {"prompt": "Return the sum of xs.", "response": "def solve(xs):\n    return sum(xs)"},
    {"messages": [{"role": "user", "content": "Return xs."}, {"role": "assistant", "content": RESPONSE}]},
] * 4


def write(path: Path, rows: list[object]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def loss(directory: Path) -> float:
    engine = Engine(directory, "cpu")
    prompt = engine.encode_prompt([{"role": "user", "content": "Return xs."}])
    tokens = engine.encode_response(RESPONSE)
    return -sum(engine.log_probs(False, [Sequence(prompt, tokens, None, None, 0.0)], 1.0, lambda: False)[0])


def test_training_lowers_the_loss_and_repeats_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = write(tmp_path / "data.jsonl", list(ROWS))
    for name in ("a", "b"):
        flags = ["--out", str(tmp_path / name), "--device", "cpu", "--lr", "1e-3", "--warmup", "1", "--batch-tokens", "128"]
        assert main(["sft", str(data), "--from", str(TEST), *flags]) == 0
    assert "epoch 3/3" in capsys.readouterr().err
    assert loss(tmp_path / "a") < loss(TEST)
    assert (tmp_path / "a/model.safetensors").read_bytes() == (tmp_path / "b/model.safetensors").read_bytes()
    assert not (tmp_path / "a/optimizer.safetensors").exists()
    assert main(["sft", str(data), "--from", str(TEST), "--out", str(tmp_path / "a")]) == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b", "data.jsonl"]


def test_an_adapter_changes_its_targets_alone(tmp_path: Path) -> None:
    data, out = write(tmp_path / "data.jsonl", list(ROWS)), tmp_path / "out"
    flags = [
        "sft",
        str(data),
        "--from",
        str(TEST),
        "--out",
        str(out),
        "--device",
        "cpu",
        "--lr",
        "1e-2",
        "--warmup",
        "1",
        "--lora-rank",
        "2",
    ]
    assert main([*flags, "--new-weights", "1"]) == 1 and not out.exists()
    assert main([*flags, "--lora-targets", "wrong"]) == 1 and not out.exists()
    assert main([*flags, "--lora-targets", "v_proj"]) == 0
    assert loss(out) < loss(TEST)
    before, after = load_file(TEST / "model.safetensors"), load_file(out / "model.safetensors")
    assert {name for name in before if not before[name].equal(after[name])} == {n for n in before if n.endswith("v_proj.weight")}
    assert json.loads((out / "adapter/adapter_config.json").read_text())["r"] == 2
    assert load_file(out / "adapter/adapter_model.safetensors")


def test_new_weights(tmp_path: Path) -> None:
    data = write(tmp_path / "data.jsonl", [ROWS[0]])
    assert main(["sft", str(data), "--from", str(TEST), "--out", str(tmp_path / "n"), "--device", "cpu", "--new-weights", "7"]) == 0
    # Almost every token is equally likely.
    count = len(Engine(TEST, "cpu").encode_response(RESPONSE))
    assert loss(tmp_path / "n") / count == pytest.approx(math.log(768), abs=0.3)


@pytest.mark.parametrize(
    "row",
    [
        "[]",
        "{",
        '{"prompt": "a"}',
        '{"prompt": 1, "response": "a"}',
        '{"messages": []}',
        '{"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "a"}]}',
        '{"messages": [{"role": "user"}, {"role": "assistant", "content": "a"}]}',
        '{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "a"}], "prompt": "a"}',
    ],
)
def test_wrong_rows_are_named(tmp_path: Path, row: str) -> None:
    data = tmp_path / "data.jsonl"
    data.write_text(json.dumps(ROWS[0]) + "\n\n" + row + "\n")
    with pytest.raises(BadRequest, match=r"data\.jsonl:3: "):
        read_rows([data])


def test_batches_have_every_sequence_once() -> None:
    sequences = [Sequence([i], [i] * (1 + i % 5), None, None, 0.0) for i in range(50)]
    parts = list(batches(sequences, 12, 1, 0))
    assert sorted(s.prompt[0] for part in parts for s in part) == list(range(50))
    assert all(sum(len(s.prompt) + len(s.tokens) for s in part) <= 12 for part in parts)
    assert list(batches(sequences, 12, 1, 0)) == parts != list(batches(sequences, 12, 1, 1))
