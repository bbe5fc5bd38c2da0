"""The processes of the ranks above 0. Rank 0, the child of the Go process, starts them and forwards its requests.

They run the same program as rank 0 and end with it: their requests come through a pipe that its end closes. Rank 0 ends when
one of them ends, sends nothing for too long, or fails where the others do not: a rank that waits for a lost one would wait
for ever. The Go process then starts the child again from the newest checkpoint.
"""

from __future__ import annotations

import os
import queue
import select
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import NoReturn

from . import logs, protocol
from .protocol import Frame

SILENCE_SECONDS = 300.0  # a rank sends a frame each second; a machine that swaps stops it for minutes

_store: Path | None = None  # the directory of the file through which the ranks of this process join
_ending = threading.Lock()


def use_store(path: Path) -> None:
    """Remove the directory of a store at the end of this process."""
    global _store
    _store = path.parent


def remove_store() -> None:
    if _store is not None:
        shutil.rmtree(_store, ignore_errors=True)


def claim_end() -> None:
    """Let one thread alone answer with the error that ends this process. Another one waits for the end here."""
    _ending.acquire()


def end(code: int) -> NoReturn:
    """End the process at once, also within a computation."""
    remove_store()
    os._exit(code)


class Workers:
    """The ranks above 0."""

    def __init__(self, size: int, parent: protocol.Writer) -> None:
        self._parent = parent
        self.store = Path(tempfile.mkdtemp(prefix="codea1-ranks-")) / "store"
        use_store(self.store)
        self._requests: list[protocol.Writer] = []
        self._answers: list[queue.Queue[Frame]] = []
        for rank in range(1, size):
            self._start(rank)

    def _start(self, rank: int) -> None:
        theirs, requests = os.pipe()
        answers, their_answers = os.pipe()
        command = [sys.executable, "-m", "codea1_torch", "serve", "--requests", str(theirs), "--answers", str(their_answers)]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=(theirs, their_answers))
        os.close(theirs)
        os.close(their_answers)
        received: queue.Queue[Frame] = queue.Queue()
        self._requests.append(protocol.Writer(requests))
        self._answers.append(received)
        threading.Thread(target=_watch, args=(rank, process, answers, received, self._parent), daemon=True).start()
        logs.info("rank started", rank=rank, pid=process.pid)

    def send(self, frame: Frame) -> None:
        """Send a request to all ranks above 0."""
        for rank, writer in enumerate(self._requests, 1):
            try:
                writer.write({**frame, "rank": rank, "store": str(self.store)} if frame.get("op") == "open" else frame)
            except BrokenPipeError:
                _lost(f"rank {rank} has ended")

    def expect(self, request: int, outcome: str) -> None:
        """Wait until all ranks have answered a request, and end the process where one has another outcome."""
        for rank, received in enumerate(self._answers, 1):
            answer = received.get()
            found = answer.get("code", "result") if answer.get("id") == request else "an answer to another request"
            if found != outcome:
                _lost(f"rank {rank} ended the request with {found}, rank 0 with {outcome}: {answer.get('message', '')}")


def _watch(rank: int, process: subprocess.Popen[bytes], answers: int, received: queue.Queue[Frame], parent: protocol.Writer) -> None:
    reader = protocol.Reader(answers)
    try:
        while select.select([answers], [], [], SILENCE_SECONDS)[0]:
            frame = reader.read()
            if frame is None:
                _lost(f"rank {rank} ended with status {process.wait()}")
            if frame.get("fatal"):
                claim_end()  # the frame has the number of the request that rank 0 runs
                parent.write(frame)
                _lost(f"rank {rank}: {frame.get('message')}")
            if frame.get("kind") in ("result", "error"):
                received.put(frame)
    except (OSError, protocol.ProtocolError) as error:
        _lost(f"the connection to rank {rank} is broken: {error}")
    _lost(f"rank {rank} has sent nothing for {SILENCE_SECONDS:.0f} s")


def _lost(reason: str) -> NoReturn:
    logs.LOGGER.error("%s; the training on several GPUs ends and starts again from its newest checkpoint", reason)
    end(1)
