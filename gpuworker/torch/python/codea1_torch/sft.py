"""Supervised training on written responses, for the cold start of a model."""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import BadRequest

if TYPE_CHECKING:
    from .engine import Engine
    from .learning import Sequence


@dataclass(frozen=True)
class Row:
    """One line of training data: messages, and the response to train on."""

    place: str  # file and line, for errors
    messages: list[dict[str, str]]
    response: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "data",
        nargs="+",
        type=Path,
        help='JSONL files; a row is {"prompt", "response"} or {"messages"} with a message of the assistant at the end',
    )
    parser.add_argument("--from", dest="start", required=True, help="checkpoint directory, or a name on the hub")
    parser.add_argument("--out", required=True, type=Path, help="checkpoint directory to write; it must not exist")
    parser.add_argument("--new-weights", type=int, metavar="SEED", help="draw new weights of the checkpoint's shape")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N")
    parser.add_argument("--optimizer-state", default="device", help="device, cpu or 8bit; see the setting of codea1 train")
    parser.add_argument("--lora-rank", type=int, default=0, help="rank of a LoRA adapter that is trained in place of all weights; 0: none")
    parser.add_argument("--lora-alpha", type=float, default=32.0, help="the change of the adapter is scaled by this over the rank")
    parser.add_argument(
        "--lora-targets", metavar="NAMES", help="projections that the adapter changes, with commas between them; default: all"
    )
    parser.add_argument("--epochs", type=int, default=3, help="passes over the data")
    parser.add_argument("--batch-tokens", type=int, default=16384, help="tokens of an optimizer step, with the prompts")
    parser.add_argument("--lr", type=float, default=1e-5, help="peak learning rate")
    parser.add_argument("--final-rate", type=float, default=0.05, help="learning rate of the last step, of the peak")
    parser.add_argument("--warmup", type=int, default=10, help="steps of linear warm-up before the cosine")
    parser.add_argument("--weight-decay", type=float, default=0.01)
    parser.add_argument("--beta1", type=float, default=0.9)
    parser.add_argument("--beta2", type=float, default=0.98)
    parser.add_argument("--grad-clip", type=float, default=1.0, help="largest gradient norm; 0 for no limit")
    parser.add_argument("--seed", type=int, default=1, help="seed of the order of the data")


def read_rows(files: list[Path]) -> list[Row]:
    rows = []
    for file in files:
        with open(file, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    rows.append(_row(f"{file}:{number}", line))
    if not rows:
        raise BadRequest("no rows to train on")
    return rows


def _row(place: str, line: str) -> Row:
    try:
        value = json.loads(line)
    except ValueError as error:
        raise BadRequest(f"{place}: {error}") from error
    if not isinstance(value, dict):
        raise BadRequest(f"{place}: not a JSON object")
    messages = value.get("messages")
    if messages is None:
        prompt, response = value.get("prompt"), value.get("response")
        if not isinstance(prompt, str) or not isinstance(response, str):
            raise BadRequest(f"{place}: neither prompt and response nor messages")
        return Row(place, [{"role": "user", "content": prompt}], response)
    if "prompt" in value or "response" in value:
        raise BadRequest(f"{place}: both messages and prompt or response")
    if not isinstance(messages, list) or len(messages) < 2:
        raise BadRequest(f"{place}: messages is not a list of two or more")
    chat = []
    for message in messages:
        if not isinstance(message, dict) or not all(isinstance(message.get(k), str) for k in ("role", "content")):
            raise BadRequest(f"{place}: a message lacks its role or its content")
        chat.append({"role": message["role"], "content": message["content"]})
    if chat[-1]["role"] != "assistant":
        raise BadRequest(f"{place}: messages do not end with a message of the assistant")
    return Row(place, chat[:-1], chat[-1]["content"])


def encode(engine: Engine, rows: list[Row]) -> list[Sequence]:
    from .learning import Sequence

    sequences = []
    for row in rows:
        try:
            prompt = engine.encode_prompt(row.messages)
        except BadRequest as error:
            raise BadRequest(f"{row.place}: {error}") from error
        tokens = engine.encode_response(row.response)
        if len(prompt) + len(tokens) > engine.config.positions:
            raise BadRequest(f"{row.place}: {len(prompt) + len(tokens)} tokens exceed the model's {engine.config.positions} positions")
        sequences.append(Sequence(prompt, tokens, None, None, 0.0))
    return sequences


def batches(sequences: list[Sequence], tokens: int, seed: int, epoch: int) -> Iterator[list[Sequence]]:
    """Shuffles the sequences for an epoch and divides them into batches of at most tokens tokens."""
    order = list(range(len(sequences)))
    random.Random(f"{seed} {epoch}").shuffle(order)
    batch: list[Sequence] = []
    used = 0
    for index in order:
        sequence = sequences[index]
        length = len(sequence.prompt) + len(sequence.tokens)
        if batch and used + length > tokens:
            yield batch
            batch, used = [], 0
        batch.append(sequence)
        used += length
    yield batch


def rate(step: int, steps: int, flags: argparse.Namespace) -> float:
    """Returns the learning rate of a step, from 0: linear warm-up, then a cosine."""
    peak: float = flags.lr
    if step < flags.warmup:
        return peak * (step + 1) / int(flags.warmup)
    done = (step - flags.warmup) / max(1, steps - 1 - flags.warmup)
    low = peak * float(flags.final_rate)
    return low + (peak - low) * (1 + math.cos(math.pi * min(1.0, done))) / 2


def main(flags: argparse.Namespace) -> None:
    if flags.out.exists():
        raise BadRequest(f"--out {flags.out} exists already")
    if flags.epochs < 1 or flags.batch_tokens < 1 or flags.warmup < 0 or not flags.lr > 0:
        raise BadRequest("--epochs, --batch-tokens and --lr must be above 0, --warmup at least 0")
    if flags.lora_rank and flags.new_weights is not None:
        raise BadRequest("--lora-rank trains a change of given weights: leave out --new-weights")
    rows = read_rows(flags.data)

    # These imports take seconds; a mistake above costs none of them.
    from . import checkpoint, logs
    from .engine import Engine, Options
    from .lora import TARGETS, Lora
    from .start import resolve

    logs.to_standard_error()
    targets = tuple(flags.lora_targets.split(",")) if flags.lora_targets else TARGETS
    lora = Lora(flags.lora_rank, flags.lora_alpha, targets) if flags.lora_rank else None
    engine = Engine(resolve(flags.start), flags.device, options=Options(optimizer_state=flags.optimizer_state, lora=lora))
    if flags.new_weights is not None:
        engine.initialize(flags.new_weights)
    sequences = encode(engine, rows)
    with checkpoint.new_directory(flags.out) as directory:
        train(engine, sequences, flags)
        engine.export(directory)


def train(engine: Engine, sequences: list[Sequence], flags: argparse.Namespace) -> float:
    """Trains, prints a line per epoch, and returns the mean loss of the last epoch."""
    from .learning import UpdateConfig

    plan = [list(batches(sequences, flags.batch_tokens, flags.seed, epoch)) for epoch in range(flags.epochs)]
    steps, step, mean = sum(map(len, plan)), 0, math.nan
    for epoch, parts in enumerate(plan, 1):
        began, loss, tokens = time.monotonic(), 0.0, 0
        for batch in parts:
            config = UpdateConfig(
                loss="sft",
                clip_low=0.0,
                clip_high=0.0,
                dual_clip=0.0,
                log_ratio_clamp=20.0,
                kl_coef=0.0,
                temperature=1.0,
                learning_rate=rate(step, steps, flags),
                weight_decay=flags.weight_decay,
                beta1=flags.beta1,
                beta2=flags.beta2,
                epsilon=1e-8,
                grad_clip=flags.grad_clip,
            )
            stats = engine.update(batch, config, lambda: False)
            loss, tokens, step = loss + stats.loss * stats.tokens, tokens + stats.tokens, step + 1
        mean = loss / tokens
        seconds = time.monotonic() - began
        print(f"epoch {epoch}/{flags.epochs}  {step} steps  loss {mean:.4f}  {seconds:.1f} s", file=sys.stderr)
    return mean
