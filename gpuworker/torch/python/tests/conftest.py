"""Small random models; the tests run on the CPU and, where there is one, on a GPU."""

from __future__ import annotations

import pytest
import torch

from codea1_torch.model import Config, Model

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
ARCHITECTURES = ["Qwen2ForCausalLM", "Qwen3ForCausalLM", "LlamaForCausalLM"]

torch.set_num_threads(1)


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    """Return each device of this machine."""
    return str(request.param)


def shape(architecture: str = "Qwen2ForCausalLM", **changes: object) -> dict[str, object]:
    """Return the config.json of a small model."""
    return {
        "architectures": [architecture],
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "max_position_embeddings": 512,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000,
        "vocab_size": 300,
        "tie_word_embeddings": architecture != "LlamaForCausalLM",
        **changes,
    }


def model(device: str, dtype: torch.dtype = torch.float32, architecture: str = "Qwen2ForCausalLM", seed: int = 1) -> Model:
    """Return a small random model; the same weights for the same seed on every device and in every type."""
    small = Model(Config.parse(shape(architecture)), device="cpu", dtype=torch.float64)
    small.initialize(seed, std=0.15)
    with torch.no_grad():
        generator = torch.Generator().manual_seed(seed)
        for p in small.parameters():
            if p.dim() == 1:
                p.add_(0.1 * torch.randn(p.shape, generator=generator, dtype=p.dtype))
    return small.to(device=device, dtype=dtype)
