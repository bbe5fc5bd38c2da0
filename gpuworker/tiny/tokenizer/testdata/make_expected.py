"""Writes expected.json: the ids Hugging Face's tokenizers gives for cases.json.

    pip install tokenizers==0.23.3
    go test ./gpuworker/tiny/tokenizer -run TestTrainedFile -update
    python make_expected.py
"""

import json
import pathlib

from tokenizers import Tokenizer

here = pathlib.Path(__file__).parent
tokenizer = Tokenizer.from_file(str(here / "tokenizer.json"))
cases = json.loads((here / "cases.json").read_text())
cases.append((here / "corpus.txt").read_text())
expected = [{"text": text, "ids": tokenizer.encode(text).ids} for text in cases]
(here / "expected.json").write_text(json.dumps(expected, ensure_ascii=True, indent=0) + "\n")
