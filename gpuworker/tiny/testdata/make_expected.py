"""Writes what Hugging Face's transformers computes, for TestLikeTransformers.

    pip install torch==2.15.0 transformers==5.23.0
    go test ./gpuworker/tiny -run TestLikeTransformers -update
    python make_expected.py

go/ is a checkpoint of the Go engine, which -update writes. python/ is one of
transformers: untied, bf16, in shards. expected.json holds, for each, prompts
through the chat template and the log-probs of every token after the first.
"""

import json
import pathlib
import shutil

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, Qwen2Config, Qwen2ForCausalLM

here = pathlib.Path(__file__).parent
CHATS = [
    [{"role": "user", "content": "Write a function that returns the sum of a list.\nIt's easy."}],
    [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "café 日本語 12345   x\n\n\ty"}],
    [{"role": "user", "content": "\n\nhello "}, {"role": "assistant", "content": "def f(x):\n    return x"}, {"role": "user", "content": ""}],
]


def make_python():
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(here / "go")
    config = Qwen2Config(
        vocab_size=len(tokenizer) + 5, hidden_size=16, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=256, rope_theta=5000.0, rms_norm_eps=1e-5, tie_word_embeddings=False,
        initializer_range=0.3, bos_token_id=tokenizer.convert_tokens_to_ids("<|endoftext|>"), eos_token_id=tokenizer.eos_token_id,
    )
    model = Qwen2ForCausalLM(config)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.dim() == 1:
                p += 0.2 * torch.randn_like(p)
    shutil.rmtree(here / "python", ignore_errors=True)
    model.to(torch.bfloat16).save_pretrained(here / "python", max_shard_size="20KB")
    tokenizer.save_pretrained(here / "python")


def expect(name):
    tokenizer = AutoTokenizer.from_pretrained(here / name)
    model = AutoModelForCausalLM.from_pretrained(here / name, dtype=torch.float32, attn_implementation="eager").eval()
    out = []
    for chat in CHATS:
        text = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        with torch.no_grad():
            scores = torch.log_softmax(model(torch.tensor([ids])).logits[0, :-1].double(), -1)
        probs = scores[torch.arange(len(ids) - 1), torch.tensor(ids[1:])]
        out.append({"checkpoint": name, "messages": chat, "ids": ids, "log_probs": [round(p, 7) for p in probs.tolist()]})
    return out


make_python()
(here / "expected.json").write_text(json.dumps(expect("go") + expect("python"), indent=0) + "\n")
