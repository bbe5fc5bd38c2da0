"""A server that scores chats with a reward model, as vLLM does: POST /classify.

The model is a sequence classifier of one label. Its score of a chat is the output of its head at the last token, without an
activation. The content of a message never becomes a special token.
"""

from __future__ import annotations

import argparse
import hmac
import json
import math
import queue
import signal
import socket
import sys
import threading
from concurrent.futures import Future
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import torch

from .chat import Chat
from .errors import BadRequest, Mismatch
from .start import resolve

BODY_BYTES = 8 << 20  # of a request
CONNECTIONS = 256
WAITING = 256  # chats that wait for a batch
_SECONDS = 60  # for a client to send its request, and for it to take the answer


class Refused(Exception):
    """The status and the reason of an answer without a score."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Scorer:
    """A reward model and its tokenizer."""

    def __init__(self, directory: Path, device: str, dtype: torch.dtype, tokens: int) -> None:
        from transformers import AutoModelForSequenceClassification

        try:
            model, loaded = AutoModelForSequenceClassification.from_pretrained(
                directory, local_files_only=True, trust_remote_code=False, use_safetensors=True, dtype=dtype, output_loading_info=True
            )
        except (OSError, ValueError, RuntimeError) as error:
            raise Mismatch(f"{directory} is no sequence classifier that can be read: {error}") from error
        if missing := sorted(loaded["missing_keys"]):  # transformers makes random weights for them
            raise Mismatch(f"{directory} lacks the weights {', '.join(missing[:4])}: it is no reward model")
        head: Any = getattr(model, "score", None)
        if not isinstance(head, torch.nn.Linear) or head.out_features != 1:
            raise Mismatch(f"{directory} is no decoder with a score of one label: its config.json needs num_labels 1")
        self._chat = Chat(directory)
        self._encoding = threading.Lock()  # the tokenizer changes while it encodes
        self._device, self._head = device, head.to(device)
        self._body: Any = model.eval().to(device).base_model
        self.tokens = min(tokens, int(getattr(model.config, "max_position_embeddings", tokens)))

    def encode(self, messages: list[dict[str, str]]) -> list[int]:
        with self._encoding:
            try:
                tokens = self._chat.encode_chat(messages)
            except BadRequest:
                raise
            except Exception as error:  # of the template, or of a text that is no Unicode
                raise BadRequest(f"the chat cannot be rendered: {error}") from error
        if len(tokens) > self.tokens:
            raise BadRequest(f"the chat has {len(tokens)} tokens; the maximum context length is {self.tokens} tokens")
        return tokens

    @torch.inference_mode()
    def score(self, chats: list[list[int]]) -> list[float]:
        """Returns the score of each chat. Tokens after the last one of a chat do not change it, up to rounding."""
        lengths = torch.tensor([len(chat) for chat in chats])
        tokens = torch.zeros(len(chats), int(lengths.max()), dtype=torch.long)
        for row, chat in zip(tokens, chats, strict=True):
            row[: len(chat)] = torch.tensor(chat)
        mask = torch.arange(tokens.shape[1])[None] < lengths[:, None]
        hidden = self._body(
            input_ids=tokens.to(self._device), attention_mask=mask.long().to(self._device), use_cache=False
        ).last_hidden_state
        last = hidden[torch.arange(len(chats), device=self._device), (lengths - 1).to(self._device)]
        scores: list[float] = self._head(last).float().squeeze(-1).tolist()
        return scores


class Batches:
    """Scores chats in batches, on one thread."""

    def __init__(self, scorer: Scorer, chats: int, tokens: int) -> None:
        self._scorer, self._chats, self._tokens = scorer, chats, tokens
        self._waiting: queue.Queue[tuple[list[int], Future[float]] | None] = queue.Queue(WAITING)
        self._held: tuple[list[int], Future[float]] | None = None  # too long for the batch before it
        self.lost: Exception | None = None  # why the device cannot be used any more

    def score(self, chat: list[int]) -> float:
        result: Future[float] = Future()
        try:
            self._waiting.put_nowait((chat, result))
        except queue.Full:
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, f"{WAITING} chats wait; try again") from None
        if self.lost is not None:
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, f"the server ends: {self.lost}")
        return result.result()

    def run(self) -> None:
        """Scores until stop is called or the device fails."""
        while self.lost is None and (batch := self._next()):
            self._answer(batch)
        if self.lost is None:
            self.lost = RuntimeError("it was stopped")
        left = [self._held]
        while not self._waiting.empty():
            left.append(self._waiting.get())
        for item in left:
            if item is not None:
                item[1].set_exception(Refused(HTTPStatus.SERVICE_UNAVAILABLE, f"the server ends: {self.lost}"))

    def stop(self) -> None:
        self._waiting.put(None)

    def _next(self) -> list[tuple[list[int], Future[float]]]:
        first = self._held or self._waiting.get()
        self._held = None
        if first is None:
            return []
        batch, longest = [first], len(first[0])
        while len(batch) < self._chats:
            try:
                item = self._waiting.get_nowait()
            except queue.Empty:
                break
            if item is None:
                self._waiting.put(None)  # this batch is the last one
                break
            longest = max(longest, len(item[0]))
            if longest * (len(batch) + 1) > self._tokens:
                self._held = item
                break
            batch.append(item)
        return batch

    def _answer(self, batch: list[tuple[list[int], Future[float]]]) -> None:
        try:
            scores = self._scorer.score([chat for chat, _ in batch])
        except torch.OutOfMemoryError as error:
            short = str(error)
        except Exception as error:
            self.lost = error
            for _, result in batch:
                result.set_exception(Refused(HTTPStatus.INTERNAL_SERVER_ERROR, f"the model failed: {error}"))
            return
        else:
            for (_, result), score in zip(batch, scores, strict=True):
                result.set_result(score)
            return
        # The frames of the error are gone, and with them the tensors that they held.
        torch.cuda.empty_cache()
        if len(batch) > 1:
            for item in batch:
                self._answer([item])
        else:
            batch[0][1].set_exception(
                Refused(HTTPStatus.BAD_REQUEST, f"a chat of {len(batch[0][0])} tokens does not fit on the device: {short}")
            )


class Server(ThreadingHTTPServer):
    """The HTTP server. It answers one request per connection."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], name: str, scorer: Scorer, batches: Batches, key: str) -> None:
        self.model, self.scorer, self.batches, self.key = name, scorer, batches, key
        self._connections = threading.BoundedSemaphore(CONNECTIONS)
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._connections.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._connections.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._connections.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Leaves a client that has gone to itself."""

    def service_actions(self) -> None:
        if self.batches.lost is not None:
            raise self.batches.lost


class Handler(BaseHTTPRequestHandler):
    timeout = _SECONDS
    server: Server

    def do_GET(self) -> None:
        if self.path == "/health":
            self._send(HTTPStatus.OK, {"status": "ok"})
        elif self.path == "/v1/models":
            self._send(HTTPStatus.OK, {"object": "list", "data": [{"id": self.server.model, "object": "model"}]})
        else:
            self._fail(Refused(HTTPStatus.NOT_FOUND, "want /classify, /v1/models or /health"))

    def do_POST(self) -> None:
        try:
            score = self._score()
            if not math.isfinite(score):
                raise Refused(HTTPStatus.BAD_REQUEST, f"the score is {score}")
        except Refused as refused:
            self._fail(refused)
        except BadRequest as error:
            self._fail(Refused(HTTPStatus.BAD_REQUEST, str(error)))
        else:
            data = [{"index": 0, "label": "LABEL_0", "probs": [score], "num_classes": 1}]
            self._send(HTTPStatus.OK, {"object": "list", "model": self.server.model, "data": data})

    def _score(self) -> float:
        if self.path != "/classify":
            raise Refused(HTTPStatus.NOT_FOUND, "want /classify")
        given = self.headers.get("Authorization", "").encode("utf-8", "replace")
        if self.server.key and not hmac.compare_digest(given, f"Bearer {self.server.key}".encode()):
            raise Refused(HTTPStatus.UNAUTHORIZED, "the key is wrong")
        request = self._body()
        if request.get("model") != self.server.model:
            raise Refused(HTTPStatus.NOT_FOUND, f"the model is {self.server.model}")
        if request.get("activation") or request.get("use_activation"):
            raise BadRequest("activation: scores have none; want false")
        messages = request.get("messages")
        if not isinstance(messages, list) or not messages:
            raise BadRequest("messages: want a list of messages")
        for i, message in enumerate(messages):
            if not isinstance(message, dict) or not all(isinstance(message.get(field), str) for field in ("role", "content")):
                raise BadRequest(f"messages[{i}]: want the texts role and content")
        return self.server.batches.score(self.server.scorer.encode([{"role": m["role"], "content": m["content"]} for m in messages]))

    def _body(self) -> dict[str, Any]:
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()):
            raise Refused(HTTPStatus.LENGTH_REQUIRED, "want a Content-Length")
        if len(length) > 9 or int(length) > BODY_BYTES:
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"want at most {BODY_BYTES} bytes")
        body = self.rfile.read(int(length))
        try:
            request = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise BadRequest(f"the body is no JSON: {error}") from error
        if not isinstance(request, dict):
            raise BadRequest("the body is no JSON object")
        return request

    def _fail(self, refused: Refused) -> None:
        self._send(refused.status, {"error": {"message": str(refused), "type": refused.status.phrase, "code": int(refused.status)}})

    def _send(self, status: HTTPStatus, content: dict[str, Any]) -> None:
        text = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            self.send_header("Retry-After", "1")
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Says nothing about requests: their paths are a client's text."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="reward model: a directory, or a name on the Hugging Face hub")
    parser.add_argument(
        "--address", default="127.0.0.1:8000", metavar="HOST:PORT", help="everyone who reaches it may ask, unless there is a key"
    )
    parser.add_argument("--name", help="of the model in requests; default: MODEL")
    parser.add_argument(
        "--device", default="cuda" if torch.cuda.is_available() else "cpu", help="cpu, cuda or cuda:N; default: %(default)s"
    )
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], help="default: bfloat16 on a GPU, else float32")
    parser.add_argument(
        "--batch", type=_count, default=8, help="most chats of a batch; with 1, a score depends on no other chat; default: 8"
    )
    parser.add_argument("--batch-tokens", type=_count, default=16384, help="most tokens of a batch of several chats; default: 16384")
    parser.add_argument("--max-tokens", type=_count, default=8192, help="most tokens of a chat; default: 8192, or what the model allows")
    parser.add_argument("--key-file", type=Path, help="file with the key that a request needs")


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("want 1 or more")
    return number


def open_server(flags: argparse.Namespace) -> Server:
    """Loads the model and binds the address."""
    host, _, port = flags.address.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise BadRequest(f"--address {flags.address}: want HOST:PORT")
    key = ""
    if flags.key_file:
        key = flags.key_file.read_text().strip()
        if not key:
            raise BadRequest(f"--key-file {flags.key_file} is empty")
    dtype = flags.dtype or ("float32" if flags.device == "cpu" else "bfloat16")
    scorer = Scorer(resolve(flags.model), flags.device, getattr(torch, dtype), flags.max_tokens)
    return Server((host.strip("[]"), int(port)), flags.name or flags.model, scorer, Batches(scorer, flags.batch, flags.batch_tokens), key)


def main(flags: argparse.Namespace) -> int:
    """Serves until SIGINT or SIGTERM, or until the device fails."""
    server = open_server(flags)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    scoring = threading.Thread(target=server.batches.run, daemon=True)
    scoring.start()
    print(f"serving {server.model} on port {server.server_port}", file=sys.stderr, flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        return 0
    except Exception as error:
        print(f"codea1_torch score: the device failed: {error}", file=sys.stderr)
        return 1
    finally:
        server.server_close()
    return 0
