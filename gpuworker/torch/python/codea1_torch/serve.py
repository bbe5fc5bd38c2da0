"""The child process: it reads requests, runs them one after the other, and writes their results.

Three threads share the process. The main thread runs the requests. The reader takes frames from the parent, so that a
cancel frame arrives while a request runs, and ends the process when the parent has ended. The beat tells the parent
that the process runs.
"""

from __future__ import annotations

import contextlib
import logging
import os
import platform
import queue
import signal
import threading
from collections.abc import Callable

from . import __version__, logs, protocol, workers
from .errors import BadRequest, Cancelled, EngineError, OutOfMemory, SamplerLost
from .protocol import Frame

BEAT_SECONDS = 1.0


class Call:
    """A request that runs: its cancellation and its progress."""

    def __init__(self, request: int, writer: protocol.Writer) -> None:
        self.request = request
        self.writer = writer
        self._cancelled = threading.Event()

    def cancel(self) -> None:
        self._cancelled.set()

    def cancelled(self) -> bool:
        return self._cancelled.is_set()

    def progress(self, done: int) -> None:
        """Reports work that is done: tokens of a sampling, files of a checkpoint."""
        self.writer.write({"kind": "progress", "id": self.request, "done": done})


Handler = Callable[[Frame, Call], Frame]


class Server:
    def __init__(self, reader: protocol.Reader, writer: protocol.Writer, handlers: dict[str, Handler]) -> None:
        self._reader = reader
        self._writer = writer
        self._handlers = handlers
        self._waiting: queue.Queue[tuple[Call, Frame]] = queue.Queue()
        self._calls: dict[int, Call] = {}
        self._lock = threading.Lock()

    def start_threads(self) -> None:
        for target in (self._read, self._beat):
            threading.Thread(target=target, name=target.__name__, daemon=True).start()

    def _read(self) -> None:
        """Takes frames until the parent closes the connection. A parent that was killed closes it, too."""
        try:
            while (frame := self._reader.read()) is not None:
                self._take(frame)
            code = 0
        except Exception:
            logs.LOGGER.exception("the connection to the parent is broken")
            code = 1
        # The main thread may be inside a long computation that nobody waits for any more.
        workers.end(code)

    def _take(self, frame: Frame) -> None:
        request = frame.get("id")
        if not isinstance(request, int) or request < 1:
            raise protocol.ProtocolError(f"a frame has the id {request!r}")
        if frame.get("op") == "cancel":
            with self._lock:
                call = self._calls.get(request)
            if call is not None:
                call.cancel()
            return
        call = Call(request, self._writer)
        with self._lock:
            self._calls[request] = call
        self._waiting.put((call, frame))

    def _beat(self) -> None:
        stop = threading.Event()
        while not stop.wait(BEAT_SECONDS):
            try:
                self._writer.write({"kind": "beat"})
            except OSError:
                return  # the parent has ended; the reader ends the process

    def run(self) -> None:
        """Runs requests for ever; the reader ends the process."""
        while True:
            call, frame = self._waiting.get()
            answer = self._answer(call, frame)
            with self._lock:
                del self._calls[call.request]
            if answer.get("fatal"):
                workers.claim_end()
                workers.remove_store()  # the parent may kill this process when it has the answer
            self._writer.write(answer)
            if answer.get("fatal"):
                workers.end(1)

    def _answer(self, call: Call, frame: Frame) -> Frame:
        op = frame.get("op")
        try:
            handler = self._handlers.get(op) if isinstance(op, str) else None
            if handler is None:
                raise BadRequest(f"operation {op!r} is unknown; there are: {', '.join(sorted(self._handlers))}")
            if call.cancelled():
                raise Cancelled("cancelled before it began")
            call.progress(0)
            return {**handler(frame, call), "kind": "result", "id": call.request}
        except EngineError as error:
            return {**_error(call, error.code, str(error)), "fatal": error.fatal}
        except protocol.ProtocolError as error:
            return _error(call, BadRequest.code, str(error))
        except Exception as error:
            code = _library_code(error)
            if code == EngineError.code:
                logs.LOGGER.exception("operation %s failed", op)
            message = f"{type(error).__name__}: {error}"
            # After an error of the device no later call of CUDA succeeds: only a new process goes on.
            return {**_error(call, code, message), "fatal": isinstance(error, SamplerLost) or _of_device(error)}


def _error(call: Call, code: str, message: str) -> Frame:
    return {"kind": "error", "id": call.request, "code": code, "message": message}


def _library_code(error: Exception) -> str:
    import torch

    return OutOfMemory.code if isinstance(error, torch.OutOfMemoryError) else EngineError.code


def _of_device(error: Exception) -> bool:
    import torch

    return isinstance(error, torch.AcceleratorError) or (isinstance(error, RuntimeError) and "CUDA error" in str(error))


def serve(requests: int, answers: int) -> None:
    """Serves the parent over two file descriptors."""
    # Ctrl-C in a terminal signals the whole group of processes. The parent decides when this one ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The output of libraries must not reach a pipe of the parent.
    os.dup2(2, 1)
    for fd in (requests, answers):
        os.set_inheritable(fd, False)
    logs.to_standard_error()
    writer = protocol.Writer(answers)
    handlers: dict[str, Handler] = {}
    server = Server(protocol.Reader(requests), writer, handlers)
    server.start_threads()

    # These imports take seconds; the threads run already.
    import torch
    import transformers

    from .operations import Operations

    transformers.logging.set_verbosity_error()
    logging.getLogger("transformers").setLevel(logging.ERROR)
    handlers.update(Operations().handlers())
    writer.write(
        {
            "kind": "hello",
            "protocol": protocol.VERSION,
            "package": __version__,
            "python": platform.python_version(),
            "torch": str(torch.__version__),
            "transformers": str(transformers.__version__),
            "cuda": torch.cuda.is_available(),
            "capabilities": sorted(handlers),
        }
    )
    with contextlib.suppress(BrokenPipeError):
        server.run()
