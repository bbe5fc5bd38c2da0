"""Weights from a trainer to samplers of other processes, and every end of one of them."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import socket
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from shipped import TEST
from test_engine import CONFIG, go

from codea1_torch import broadcast, checkpoint
from codea1_torch.engine import Engine, Options
from codea1_torch.protocol import Frame, Reader, Writer

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="sockets without files are of Linux")


def opened() -> Engine:
    return Engine(TEST, "cpu", options=Options(broadcast=True))


def opened_trainer() -> Engine:
    engine = opened()
    engine.load(TEST)
    return engine


def step(trainer: Engine, to: Path) -> Path:
    """Train and save as the Go process does: into a directory that is renamed."""
    trainer.update(go(trainer)[1], CONFIG, lambda: False)
    temporary = to.parent / (".tmp-" + to.name)
    temporary.mkdir(parents=True)
    trainer.save(temporary)
    return temporary.rename(to)


def damaged(version: Path) -> dict[str, torch.Tensor]:
    """Return the weights of a version, and make its file useless in a way that keeps its identity."""
    file = version / "model.safetensors"
    weights = {name: tensor.clone() for name, tensor in load_file(file).items()}
    stat = file.stat()
    with file.open("r+b") as opened:
        opened.truncate(8 + int.from_bytes(opened.read(8), "little"))  # the header alone
        opened.truncate(stat.st_size)
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    return weights


def assert_weights(engine: Engine, want: dict[str, torch.Tensor]) -> None:
    have = dict(engine._model.tensors())
    assert have.keys() == want.keys()
    assert all(torch.equal(have[name], want[name]) for name in want)


def in_process(work: Callable[[Any], None]) -> tuple[Any, Any]:
    """Run work in a forked process, which has imported everything already, with a pipe to it."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()

    def run() -> None:
        try:
            work(theirs)
        except BaseException:
            traceback.print_exc()
        os._exit(1)  # without the handlers of pytest

    process = context.Process(target=run)
    process.start()
    theirs.close()
    return process, ours


def test_a_sampler_gets_weights_of_another_process_and_goes_on_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broadcast, "SECONDS", 300.0)  # a busy machine is slow

    def train(commands: Any) -> None:
        trainer = opened_trainer()
        while True:
            step(trainer, Path(commands.recv()))
            commands.send(None)

    process, trainer = in_process(train)
    samplers = [opened() for _ in range(2)]

    def trained(name: str) -> Path:
        trainer.send(str(tmp_path / name))
        assert trainer.poll(300)
        trainer.recv()
        return tmp_path / name

    try:
        first = trained("v1")
        for sampler in samplers:
            sampler.load_weights(first)  # by file: nobody had asked before it was saved
            assert_weights(sampler, load_file(first / "model.safetensors"))
        for name in ("v2", "v3"):
            version = trained(name)
            shutil.copytree(version, tmp_path / "copies" / name)
            want = damaged(version)
            for sampler in samplers:
                sampler.load_weights(version)
                assert_weights(sampler, want)
        late = opened()
        late.load_weights(version)
        assert_weights(late, want)
        before = go(samplers[0])[1]
        assert before == go(late)[1] == go(samplers[1])[1]
    finally:
        process.kill()
        process.join()
    copies = tmp_path / "copies"
    for folder, name in ((copies, "v2"), (tmp_path, "v1")):  # where no trainer ever was, and where one was killed
        whole = folder / name
        for sampler in samplers:
            sampler.load_weights(whole)
            assert_weights(sampler, load_file(whole / "model.safetensors"))
    # Another trainer of the same run.
    trainer = opened_trainer()
    for name in ("v4", "v5"):
        version = step(trainer, tmp_path / name)
        if name == "v5":
            want = damaged(version)
        for sampler in samplers:
            sampler.load_weights(version)
            assert_weights(sampler, want if name == "v5" else load_file(version / "model.safetensors"))


class FalseTrainer:
    """A trainer at the address of a folder that stops at some point."""

    def __init__(self, folder: Path, stop: str) -> None:
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(broadcast._address(folder))
        self._listener.listen()
        self._stop = stop
        self.asked = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            self.asked += 1
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        if self._stop == "silent":
            threading.Event().wait()
        reader, writer = Reader(connection.fileno()), Writer(connection.fileno())
        reader.read()
        store = Path(tempfile.mkdtemp()) / "store"
        writer.write({"store": str(store)})
        if self._stop == "never joins":
            threading.Event().wait()
        group = broadcast._join(store, 0, torch.device("cpu"))
        asked: Frame | None = reader.read()
        if asked is None:
            return
        count = len(list(Engine(TEST, "cpu")._model.parameters()))
        writer.write({"sums": [1] * count})
        if self._stop == "dies in the transfer":
            group.broadcast(torch.ones(1), 0)
            connection.close()
            group.abort()
        elif self._stop == "hangs in the transfer":
            threading.Event().wait()
        elif self._stop == "other weights":
            with contextlib.suppress(RuntimeError):  # the deadline may end the group
                for p in Engine(TEST, "cpu")._model.parameters():
                    group.broadcast(torch.ones_like(p), 0).wait()
            reader.read()


@pytest.mark.parametrize("stop", ["silent", "never joins", "dies in the transfer", "hangs in the transfer", "other weights"])
def test_a_sampler_reads_the_files_when_its_trainer_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: str) -> None:
    monkeypatch.setattr(broadcast, "SECONDS", 0.3)
    version = step(opened_trainer(), tmp_path / "other" / "v1")
    (tmp_path / "run").mkdir()
    version = version.rename(tmp_path / "run" / "v1")
    trainer = FalseTrainer(version.parent, stop)
    sampler = opened()
    for _ in range(broadcast._FAILURES + 1):
        sampler.load_weights(TEST)
        sampler.load_weights(version)
        assert_weights(sampler, load_file(version / "model.safetensors"))
    assert trainer.asked <= broadcast._FAILURES


def test_a_trainer_goes_on_when_a_sampler_dies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broadcast, "SECONDS", 300.0)
    trainer, folder = opened_trainer(), tmp_path / "run"
    first = step(trainer, folder / "v1")
    kind, device = broadcast._kind(trainer._model)

    def ask(version: Path) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.connect(broadcast._address(folder))
        reader, writer = Reader(connection.fileno()), Writer(connection.fileno())
        writer.write(kind)
        store = (reader.read() or {})["store"]
        group = broadcast._join(Path(store), 1, device)
        writer.write({"holds": broadcast._listed(checkpoint.identity(version))})
        assert (reader.read() or {})["sums"] == (trainer._offer._sums if version != first else [])
        connection.close()  # a killed process closes its connections
        group.abort()
        return connection

    ask(first)
    second = step(trainer, folder / "v2")
    ask(second)
    third = step(trainer, folder / "v3")
    sampler = opened()
    want = damaged(third)
    sampler.load_weights(third)
    assert_weights(sampler, want)
    # Where nobody asks, the trainer keeps no copy.
    for number in range(4, 5 + broadcast._SAVES):
        step(trainer, folder / f"v{number}")
    assert not trainer._offer._weights


def test_only_like_weights_on_another_gpu_are_offered() -> None:
    one: Frame = {"type": "cuda", "dtype": "torch.bfloat16", "shapes": [[2, 3]], "gpu": "a"}
    assert broadcast._fits(one, {**one, "gpu": "b"})
    for change in ({}, {"gpu": "b", "dtype": "torch.float32"}, {"gpu": "b", "shapes": [[3, 2]]}, {"gpu": "b", "type": "cpu"}):
        assert not broadcast._fits(one, {**one, **change})
