"""Random models of real shapes."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

from codea1_torch import checkpoint
from codea1_torch.model import Config, Model

QWEN_1_5B = {
    "architectures": ["Qwen2ForCausalLM"],
    "hidden_size": 1536,
    "intermediate_size": 8960,
    "num_hidden_layers": 28,
    "num_attention_heads": 12,
    "num_key_value_heads": 2,
    "max_position_embeddings": 32768,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1e6,
    "vocab_size": 151936,
    "tie_word_embeddings": True,
}

# To try a benchmark on the CPU.
SMALL = {
    **QWEN_1_5B,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 1024,
    "vocab_size": 1024,
}

_TOKENIZER = Path(__file__).parents[3] / "tiny" / "checkpoints" / "test"


def arguments(description: str | None) -> argparse.ArgumentParser:
    """Return the flags that benchmarks share."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="a small shape, to try the benchmark on the CPU")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    return parser


def random_model(seed: int = 0, *, small: bool = False, device: str = "cuda") -> Model:
    """Return Qwen2.5-Coder-1.5B's shape with random weights, in bfloat16 on a GPU and float32 on the CPU."""
    dtype = torch.float32 if device == "cpu" else torch.bfloat16
    model = Model(Config.parse(SMALL if small else QWEN_1_5B), device=device, dtype=dtype)
    model.initialize(seed)
    return model


def settings(small: bool) -> dict[str, object]:
    """Return the config.json of a shape."""
    return {"model_type": "qwen2", **(SMALL if small else QWEN_1_5B)}


def write(model: Model, small: bool, directory: Path) -> None:
    """Write a checkpoint with the tokenizer of an embedded model."""
    checkpoint.write(directory, model.tensors(), None, settings(small), checkpoint.read_carried(_TOKENIZER))


def sum_weights(directory: Path) -> None:
    """Compute the sums of the weights' files as codea1 does when it has read of a version: up to 16 files at a time."""

    def digest(path: Path) -> None:
        with open(path, "rb") as file:
            hashlib.file_digest(file, "sha256") if sys.version_info >= (3, 11) else hashlib.sha256(file.read())

    with ThreadPoolExecutor(max(2, min(16, os.cpu_count() or 1))) as pool:
        list(pool.map(digest, checkpoint.weight_files(directory)))


def device_name(device: str) -> str:
    return torch.cuda.get_device_name(device) if device != "cpu" else "CPU"


def wait(device: str) -> None:
    """Wait for the work of a device."""
    if device != "cpu":
        torch.cuda.synchronize(device)


def report(found: dict[str, object], out: Path | None) -> None:
    """Print a result as JSON, and write it to a file."""
    text = json.dumps(found, indent=2)
    print(text, flush=True)
    if out is not None:
        out.write_text(text + "\n", encoding="utf-8")
