"""The checkpoint that a run starts from: a directory, or a name on the Hugging Face hub."""

from __future__ import annotations

import os
from pathlib import Path

from . import checkpoint
from .chat import Chat
from .errors import Mismatch, MissingCheckpoint
from .model import Config

_PATTERNS = [*checkpoint.CARRIED, checkpoint.CONFIG, checkpoint.INDEX, "*.safetensors"]


def resolve(source: str) -> Path:
    """Returns the directory of a checkpoint. A name on the hub is downloaded unless the cache has it."""
    path = Path(source)
    if path.is_dir():
        return path
    if os.path.isabs(source) or source.startswith(".") or source.count("/") != 1:
        raise MissingCheckpoint(f"{source} is neither a directory nor a name on the Hugging Face hub (OWNER/NAME)")
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(source, allow_patterns=_PATTERNS))
    except Exception as error:
        raise MissingCheckpoint(f"{source} cannot be had from the Hugging Face hub: {error}") from error


def prepare(source: str, directory: Path) -> None:
    """Copies a checkpoint into an empty directory, after a check that the engine can open it."""
    path = resolve(source)
    checkpoint.require(path)
    try:
        config = Config.read(path)
    except ValueError as error:
        raise Mismatch(f"{path / checkpoint.CONFIG}: {error}") from error
    chat = Chat(path)
    if chat.size > config.vocabulary:
        raise Mismatch(f"the tokenizer of {path} has {chat.size} tokens, its model {config.vocabulary}")
    checkpoint.end_tokens(path, chat.end_token)
    checkpoint.prepare(path, directory)
