import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from shipped import TEST

from codea1_torch import start
from codea1_torch.__main__ import main
from codea1_torch.errors import Mismatch, MissingCheckpoint
from codea1_torch.model import Model


def test_a_directory_is_copied(tmp_path: Path) -> None:
    (tmp_path / "to").mkdir()
    assert main(["prepare", str(TEST), str(tmp_path / "to")]) == 0
    for name in ("config.json", "model.safetensors", "tokenizer.json", "generation_config.json"):
        assert (tmp_path / "to" / name).read_bytes() == (TEST / name).read_bytes()


def test_shards_become_one_file(tmp_path: Path) -> None:
    source, to = tmp_path / "shards", tmp_path / "to"
    shutil.copytree(TEST, source)
    to.mkdir()
    tensors = load_file(source / "model.safetensors")
    (source / "model.safetensors").unlink()
    names = sorted(tensors)
    index = {name: f"model-{i % 2}.safetensors" for i, name in enumerate(names)}
    for file in set(index.values()):
        save_file({n: tensors[n] for n in names if index[n] == file}, source / file)
    (source / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    start.prepare(str(source), to)
    copied = load_file(to / "model.safetensors")
    assert copied.keys() == tensors.keys()
    assert all(copied[name].equal(tensors[name]) for name in names)

    other = to.parent / "twice"
    other.mkdir()
    save_file({n: tensors[n] for n in names}, source / "model-1.safetensors")
    with pytest.raises(Mismatch, match="is also in another shard"):
        start.prepare(str(source), other)

    index[names[0]] = "../../etc/passwd"
    (source / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    with pytest.raises(Mismatch, match="outside"):
        start.prepare(str(source), tmp_path)


def test_one_file_is_preferred_to_shards(tmp_path: Path) -> None:
    """The sum of the weights that an event names is that of this file."""
    source = tmp_path / "both"
    shutil.copytree(TEST, source)
    tensors = load_file(source / "model.safetensors")
    save_file({name: tensor + 1 for name, tensor in tensors.items()}, source / "other.safetensors")
    (source / "model.safetensors.index.json").write_text(json.dumps({"weight_map": dict.fromkeys(tensors, "other.safetensors")}))
    model = Model.load(source, device="cpu", dtype=torch.float32)
    assert all(tensor.equal(tensors[name].float()) for name, tensor in model.tensors())


def test_a_name_is_taken_from_the_offline_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    model = tmp_path / "models--owner--name"
    shutil.copytree(TEST, model / "snapshots" / "abc")
    (model / "refs").mkdir()
    (model / "refs" / "main").write_text("abc")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert start.resolve("owner/name") == model / "snapshots" / "abc"
    with pytest.raises(MissingCheckpoint, match="owner/other"):
        start.resolve("owner/other")


@pytest.mark.parametrize("source", ["/nothing/here", "./nothing", "nothing", "a/b/c"])
def test_what_is_no_name_is_not_asked_for(source: str) -> None:
    with pytest.raises(MissingCheckpoint, match="neither a directory nor a name"):
        start.resolve(source)


def test_an_error_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(TEST, broken)
    (broken / "tokenizer_config.json").write_text("{}")
    assert main(["prepare", str(broken), str(tmp_path)]) == 1
    assert "chat template" in capsys.readouterr().err.splitlines()[-1]
