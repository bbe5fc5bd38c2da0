"""A small random reward model behind HTTP."""

from __future__ import annotations

import argparse
import http.client
import json
import shutil
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import shape
from shipped import TEST

from codea1_torch import score
from codea1_torch.chat import Chat
from codea1_torch.errors import BadRequest, Mismatch

CHATS = [
    [{"role": "user", "content": f"Return {i}."}, {"role": "assistant", "content": "x = 1\n" * (i % 5) + f"y = {i}"}] for i in range(20)
]


def build(directory: Path, labels: int = 1) -> Path:
    """Write a reward model with the tokenizer of the embedded engine."""
    from transformers import Qwen2Config, Qwen2ForSequenceClassification

    torch.manual_seed(1)
    sizes = {k: v for k, v in shape().items() if k not in ("architectures", "head_dim")} | {"vocab_size": Chat(TEST).size}
    Qwen2ForSequenceClassification(Qwen2Config(**sizes, num_labels=labels, pad_token_id=0)).save_pretrained(directory)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(TEST / name, directory / name)
    return directory


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("model"))


def flags(model: Path, *more: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    score.add_arguments(parser)
    return parser.parse_args([str(model), "--address", "127.0.0.1:0", "--device", "cpu", "--name", "m", *more])


@pytest.fixture(scope="module")
def server(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[score.Server]:
    key = tmp_path_factory.mktemp("key") / "key"
    key.write_text("secret\n")
    server = score.open_server(flags(model, "--key-file", str(key), "--max-tokens", "200"))
    threads = [threading.Thread(target=run) for run in (server.serve_forever, server.batches.run)]
    for thread in threads:
        thread.start()
    yield server
    server.shutdown()
    server.batches.stop()
    for thread in threads:
        thread.join()
    server.server_close()


def ask(server: score.Server, body: bytes | dict[str, Any], path: str = "/classify", **headers: str) -> tuple[int, dict[str, Any]]:
    connection = http.client.HTTPConnection(*server.server_address[:2])
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection.request("POST", path, text, {"Authorization": "Bearer secret", **headers})
    answer = connection.getresponse()
    content = json.loads(answer.read())
    connection.close()
    return answer.status, content


def request(chat: list[dict[str, str]], **more: object) -> dict[str, Any]:
    return {"model": "m", "messages": chat, "add_generation_prompt": False, "activation": False, "use_activation": False, **more}


def expected(model: Path) -> list[float]:
    """Return the scores of transformers, without batches."""
    from transformers import AutoModelForSequenceClassification

    reference = AutoModelForSequenceClassification.from_pretrained(model, dtype=torch.float32).eval()
    chat = Chat(model)
    with torch.inference_mode():
        return [float(reference(torch.tensor([chat.encode_chat(messages)])).logits) for messages in CHATS]


def test_scores_are_those_of_transformers(model: Path, device: str) -> None:
    scorer = score.Scorer(model, device, torch.float32, 512)
    scores = scorer.score([scorer.encode(chat) for chat in CHATS])
    assert scores == pytest.approx(expected(model), abs=1e-4)
    assert max(scores) - min(scores) > 1e-2


def test_clients_at_the_same_time_have_their_own_scores(server: score.Server, model: Path) -> None:
    with socket.create_connection(server.server_address[:2]) as silent, ThreadPoolExecutor(len(CHATS)) as pool:
        silent.send(b"POST /classify HTTP/1.1\r\n")
        answers = list(pool.map(lambda chat: ask(server, request(chat)), CHATS))
    assert [status for status, _ in answers] == [200] * len(CHATS)
    assert [answer["data"][0]["probs"][0] for _, answer in answers] == pytest.approx(expected(model), abs=1e-4)
    assert answers[0][1]["model"] == "m"


def test_what_is_refused(server: score.Server) -> None:
    chat = CHATS[0]
    user: list[Any] = [{"role": "user", "content": "a"}]
    for body, status, reason in [
        (b"{", 400, "no JSON"),
        (b"[" * 100_000, 400, "no JSON"),
        (b"\xff", 400, "no JSON"),
        ([], 400, "no JSON object"),
        (request(chat, model="other"), 404, "the model is m"),
        (request(chat, activation=True), 400, "activation"),
        (request([]), 400, "messages: want"),
        (request([*user, 1]), 400, "messages[1]"),
        (request([{"role": "user", "content": None}]), 400, "messages[0]"),
        (request([{"role": "tool", "content": "a"}]), 400, "role 'tool'"),
        (request([{"role": "user", "content": "\ud800"}]), 400, "cannot be rendered"),
        (request([{"role": "user", "content": "a b " * 200}]), 400, "maximum context length is 200 tokens"),
    ]:
        assert (got := ask(server, body if isinstance(body, (bytes, dict)) else json.dumps(body).encode()))[0] == status, (reason, got)
        assert reason in got[1]["error"]["message"]
    assert ask(server, request(chat), Authorization="Bearer wrong")[0] == 401
    assert ask(server, request(chat), path="/v1/other")[0] == 404
    for length, status in [("x", 411), ("-1", 411), (str(score.BODY_BYTES + 1), 413), ("9" * 5000, 413)]:
        with socket.create_connection(server.server_address[:2]) as client:
            client.sendall(f"POST /classify HTTP/1.1\r\nAuthorization: Bearer secret\r\nContent-Length: {length}\r\n\r\n".encode())
            assert int(client.makefile("rb").readline().split()[1]) == status
    assert ask(server, request(chat))[0] == 200


def test_other_models_are_refused(model: Path, tmp_path: Path) -> None:
    with pytest.raises(Mismatch, match="score of one label"):
        score.Scorer(build(tmp_path / "two", labels=2), "cpu", torch.float32, 512)
    with pytest.raises(Mismatch, match=r"lacks the weights score\.weight"):
        score.Scorer(TEST, "cpu", torch.float32, 512)
    with pytest.raises(Mismatch, match="no sequence classifier"):
        score.Scorer(tmp_path, "cpu", torch.float32, 512)
    with pytest.raises(BadRequest, match="HOST:PORT"):
        score.open_server(flags(model, "--address", "8000"))


class Fake:
    """A scorer whose scores are lengths. A chat with a 9 fails, and more than so many tokens do not fit."""

    def __init__(self, fits: int = 1 << 30) -> None:
        self.fits, self.batches = fits, list[list[int]]()

    def score(self, chats: list[list[int]]) -> list[float]:
        if sum(map(len, chats)) > self.fits:
            raise torch.OutOfMemoryError("too large")
        if any(9 in chat for chat in chats):
            raise RuntimeError("device-side assert")
        self.batches.append([len(chat) for chat in chats])
        return [float(len(chat)) for chat in chats]


def results(batches: score.Batches, chats: list[list[int]], stop: bool = True) -> list[float | HTTPStatus]:
    """Return the scores or statuses of chats that wait before the first batch."""

    def one(chat: list[int]) -> float | HTTPStatus:
        try:
            return batches.score(chat)
        except score.Refused as refused:
            return refused.status

    with ThreadPoolExecutor(max(1, len(chats))) as pool:
        futures = []
        for i, chat in enumerate(chats):
            futures.append(pool.submit(one, chat))
            while batches._waiting.qsize() <= i and not futures[-1].done():
                pass
        if stop:
            batches.stop()
        batches.run()
        return [future.result() for future in futures]


def test_batches_are_bounded() -> None:
    fake: Any = Fake()
    assert results(score.Batches(fake, 3, 20), [[1] * n for n in (2, 2, 2, 5, 11, 30, 1)]) == [2, 2, 2, 5, 11, 30, 1]
    assert fake.batches == [[2, 2, 2], [5], [11], [30], [1]]


def test_a_batch_that_does_not_fit_is_scored_one_by_one() -> None:
    fake: Any = Fake(fits=4)
    assert results(score.Batches(fake, 3, 100), [[1] * 2, [1] * 5, [1] * 3]) == [2, HTTPStatus.BAD_REQUEST, 3]
    assert fake.batches == [[2], [3]]


def test_a_device_that_fails_ends_the_server() -> None:
    fake: Any = Fake()
    batches = score.Batches(fake, 1, 100)
    got = results(batches, [[1], [9], [1, 1], [1]], stop=False)
    assert got == [1, HTTPStatus.INTERNAL_SERVER_ERROR, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.SERVICE_UNAVAILABLE]
    assert isinstance(batches.lost, RuntimeError)
    with pytest.raises(score.Refused, match="the server ends"):
        batches.score([1])


def test_too_many_chats_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(score, "WAITING", 2)
    fake: Any = Fake()
    batches = score.Batches(fake, 1, 100)
    batches._waiting.put(None)
    batches._waiting.put(None)
    with pytest.raises(score.Refused, match="try again"):
        batches.score([1])
