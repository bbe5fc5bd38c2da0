"""The tokenizer of a checkpoint, and its chat template."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from .errors import BadRequest, Mismatch

_ROLES = ("system", "user", "assistant")
# Characters for private use stand for special tokens in the content of a message, while the template renders it.
_FIRST_STAND_IN = 0xF0000


class Chat:
    """Renders messages as tokens, and tokens as text."""

    def __init__(self, directory: Path) -> None:
        # The import takes seconds, and doctor must work without the library.
        from transformers import AutoTokenizer

        try:
            self._tokenizer: Any = AutoTokenizer.from_pretrained(directory, local_files_only=True, trust_remote_code=False, use_fast=True)
        except (OSError, ValueError) as error:
            raise Mismatch(f"the tokenizer of {directory} cannot be read: {error}") from error
        if not self._tokenizer.chat_template:
            raise Mismatch(f"{directory} has no chat template: add chat_template.jinja")
        specials = sorted(set(self._tokenizer.all_special_tokens) | self._added_specials(), key=len, reverse=True)
        self._specials = re.compile("|".join(map(re.escape, specials)))
        self._stand_ins = {token: chr(_FIRST_STAND_IN + i) for i, token in enumerate(specials)}

    def _added_specials(self) -> set[str]:
        return {str(token) for token in self._tokenizer.added_tokens_decoder.values() if token.special}

    @property
    def end_token(self) -> int | None:
        end: int | None = self._tokenizer.eos_token_id
        return end

    @property
    def size(self) -> int:
        return len(self._tokenizer)

    def encode_prompt(self, messages: list[dict[str, str]]) -> list[int]:
        """Renders messages with the header of the assistant's turn. Content never becomes a special token.

        A last message of the assistant is the begin of that turn.
        """
        return self._encode_messages(messages, begun=True)

    def encode_chat(self, messages: list[dict[str, str]]) -> list[int]:
        """Renders messages with the end of the last turn. Content never becomes a special token."""
        return self._encode_messages(messages, begun=False)

    def _encode_messages(self, messages: list[dict[str, str]], begun: bool) -> list[int]:
        for i, message in enumerate(messages):
            if message["role"] not in _ROLES:
                raise BadRequest(f"message {i} has the role {message['role']!r}; want one of {', '.join(_ROLES)}")
        if any(self._specials.search(message["content"]) for message in messages):
            return self._encode_apart(messages, begun)
        return self._encode(self._render(messages, begun))

    def encode_response(self, text: str) -> list[int]:
        """Returns the tokens of an assistant's turn after its header, with the end token."""
        if self.end_token is None:
            raise Mismatch("the tokenizer has no end token: add eos_token to tokenizer_config.json")
        return [*self._encode_plain(text), self.end_token]

    def decode(self, rows: list[list[int]]) -> list[str]:
        """Returns the text of each row of tokens, with special tokens. The library decodes several at a time."""
        texts: list[str] = self._tokenizer.backend_tokenizer.decode_batch(rows, skip_special_tokens=False)
        return texts

    def _render(self, messages: list[dict[str, str]], begun: bool = True) -> str:
        open_turn = ""
        if begun and messages and messages[-1]["role"] == "assistant":
            messages, open_turn = messages[:-1], messages[-1]["content"]
        text: str = self._tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=begun)
        return text + open_turn

    def _encode(self, text: str) -> list[int]:
        tokens: list[int] = self._tokenizer.encode(text, add_special_tokens=False)
        return tokens

    def _encode_apart(self, messages: list[dict[str, str]], begun: bool = True) -> list[int]:
        """Encodes messages with the text of special tokens in their content.

        The tokenizer splits its input at special tokens and encodes the pieces separately. This does the same, but
        takes as special only what the template wrote.
        """
        hidden = [{**m, "content": self._specials.sub(lambda s: self._stand_ins[s[0]], m["content"])} for m in messages]
        text = self._render(hidden, begun)
        tokens: list[int] = []
        begin = 0
        for special in self._specials.finditer(text):
            tokens += self._encode_plain(self._shown(text[begin : special.start()]))
            tokens.append(self._tokenizer.convert_tokens_to_ids(special[0]))
            begin = special.end()
        return tokens + self._encode_plain(self._shown(text[begin:]))

    def _shown(self, text: str) -> str:
        for token, stand_in in self._stand_ins.items():
            text = text.replace(stand_in, token)
        return text

    def _encode_plain(self, text: str) -> list[int]:
        """Encodes text without special tokens, also where it has their names."""
        backend = self._tokenizer.backend_tokenizer
        before = backend.encode_special_tokens
        backend.encode_special_tokens = True
        try:
            tokens: list[int] = backend.encode(text, add_special_tokens=False).ids
        finally:
            backend.encode_special_tokens = before
        return tokens
