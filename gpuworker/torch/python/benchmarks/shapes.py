"""Random models of real shapes."""

from __future__ import annotations

import torch

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


def random_model(seed: int = 0) -> Model:
    """Return Qwen2.5-Coder-1.5B's shape with random weights on the GPU."""
    model = Model(Config.parse(QWEN_1_5B), device="cuda", dtype=torch.bfloat16)
    model.initialize(seed)
    return model
