"""Files that several threads write have the bytes of those that safetensors writes."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from codea1_torch import files

MEMORY = Path("/dev/shm")


@pytest.fixture(params=["disk", "memory"])
def directory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A directory for each way to write a file."""
    if request.param == "disk":
        yield tmp_path
        return
    if not os.access(MEMORY, os.W_OK):
        pytest.skip(f"{MEMORY} cannot be written")
    with tempfile.TemporaryDirectory(dir=MEMORY) as name:
        yield Path(name)


def test_bytes_are_those_of_safetensors(directory: Path, tmp_path: Path, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "CHUNK", 64)  # tensors of many parts, the last one shorter
    generator = torch.Generator().manual_seed(1)
    whole = torch.randn(40, 7, generator=generator)
    tensors = {
        "b": whole.to(device),
        "rows": whole.to(device, torch.bfloat16)[3:8],
        "columns": whole.to(device)[:, 2:4],
        "é": torch.arange(5, device=device),
        "a": whole.double().to(device),
        "half": whole.half(),
        "empty": torch.zeros(0, 3),
        "scalar": torch.tensor(2.5, device=device),
        "bytes": torch.arange(9, dtype=torch.uint8, device=device),
        "int": torch.arange(9, dtype=torch.int32),
    }
    ours = directory / "ours"
    lines = files.write_tensors(ours, tensors, {"step": "3"}, flush=True, summed=True)
    save_file({n: t.cpu().contiguous() for n, t in tensors.items()}, tmp_path / "theirs", metadata={"step": "3"})
    assert ours.read_bytes() == (tmp_path / "theirs").read_bytes()
    assert lines == f"{hashlib.sha256(ours.read_bytes()).hexdigest()}  ours\n# {ours.stat().st_size} bytes: ours\n"
    for name, tensor in load_file(ours).items():
        assert torch.equal(tensor, tensors[name].cpu())
    # Into tensors of another type, on the device.
    into = {n: torch.zeros(t.shape, dtype=torch.float32, device=device) for n, t in tensors.items()}
    files.require_finite({ours: into})
    files.read_into({ours: into})
    for name, tensor in into.items():
        assert torch.equal(tensor.cpu(), tensors[name].cpu().float())


def test_damaged_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "CHUNK", 64)
    path = tmp_path / "x"
    values = torch.ones(100, dtype=torch.bfloat16)
    values[-1] = torch.nan
    save_file({"a": torch.ones(3), "last": values}, path)
    files.require_finite({path: ["a"]})
    with pytest.raises(ValueError, match="last has a value that is not finite"):
        files.require_finite({path: ["a", "last"]})
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(ValueError, match="ends within last"):
        files.read_into({path: {"last": torch.zeros(100)}})


def test_errors_of_the_disk_are_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.pwrite", full)
    with pytest.raises(OSError, match="No space"):
        files.write_tensors(tmp_path / "x", {"a": torch.ones(3)}, {}, flush=False)
    with pytest.raises(FileExistsError):
        files.write_tensors(tmp_path / "x", {"a": torch.ones(3)}, {}, flush=False)
