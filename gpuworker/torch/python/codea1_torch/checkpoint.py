"""Checkpoint directories: Hugging Face files, and the optimizer's state beside them.

A directory that the embedded engine of codea1 wrote opens here, and the other way round; gpuworker/tiny/FORMAT.md
describes the files.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import torch
from safetensors import SafetensorError, safe_open

from .errors import Mismatch, MissingCheckpoint
from .files import Rows, write_tensors, yield_to_others

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
OPTIMIZER = "optimizer.safetensors"
MASTERS = "masters.safetensors"  # float32 weights in training, where the model has a smaller type
SUMS = "SHA256SUMS"
SHARD_BYTES = 1 << 28  # of a file of tensors, unless one tensor is larger
GENERATION = "generation_config.json"
TOKENIZER = "tokenizer.json"

# The files that a saved checkpoint takes unchanged from the one that was opened.
CARRIED = (
    TOKENIZER,
    "tokenizer_config.json",
    GENERATION,
    "chat_template.jinja",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "tokenizer.model",
)
MAX_TEXT_BYTES = 64 << 20

# Keys of config.json that may differ between two checkpoints of one model.
_INCIDENTAL = ("torch_dtype", "dtype", "transformers_version", "use_cache", "_name_or_path")

_FILES_AT_A_TIME = max(2, min(16, os.cpu_count() or 1))

_STEP = "step"
_MASTER = "master."

Tensors = dict[str, torch.Tensor]
File: TypeAlias = tuple[str, Mapping[str, torch.Tensor | Rows], dict[str, str]]  # name, tensors and metadata


def require(directory: Path) -> None:
    """Raises MissingCheckpoint where a directory has no checkpoint."""
    for name in (CONFIG, TOKENIZER):
        if not (directory / name).is_file():
            raise MissingCheckpoint(f"{directory / name} is missing")
    weight_files(directory)


def weight_files(directory: Path) -> list[Path]:
    """Returns the files with the weights: one, or the shards that the index names.

    Every reader of weights asks here: another choice between the two would load weights that have not been compared with
    their sum.
    """
    if (directory / WEIGHTS).is_file():
        return [directory / WEIGHTS]
    if not (directory / INDEX).is_file():
        raise MissingCheckpoint(f"{directory} has neither {WEIGHTS} nor {INDEX}")
    index = read_json(directory / INDEX).get("weight_map")
    if not isinstance(index, dict) or not index:
        raise Mismatch(f"{directory / INDEX} has no weight_map")
    files = []
    for name in sorted({str(file) for file in index.values()}):
        if Path(name).name != name:
            raise Mismatch(f"{directory / INDEX} names the file {name!r} outside of its directory")
        if not (directory / name).is_file():
            raise MissingCheckpoint(f"{directory / name} is missing")
        files.append(directory / name)
    return files


def identity(directory: Path) -> tuple[tuple[int, int, int, int], ...]:
    """Returns an identity of the weights in a directory without reading them.

    A checkpoint keeps its identity when its directory is renamed, and its files never change.
    """
    files = (file.stat() for file in weight_files(directory))
    return tuple((s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns) for s in files)


def read_json(path: Path) -> dict[str, object]:
    try:
        if path.stat().st_size > MAX_TEXT_BYTES:
            raise Mismatch(f"{path} is larger than {MAX_TEXT_BYTES} bytes")
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise MissingCheckpoint(f"{path} is missing") from error
    except (ValueError, RecursionError) as error:
        raise Mismatch(f"{path} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise Mismatch(f"{path} is not a JSON object")
    return value


def read_carried(directory: Path) -> dict[str, bytes]:
    carried = {}
    for name in CARRIED:
        path = directory / name
        if path.is_file():
            if path.stat().st_size > MAX_TEXT_BYTES:
                raise Mismatch(f"{path} is larger than {MAX_TEXT_BYTES} bytes")
            carried[name] = path.read_bytes()
    return carried


def require_same(directory: Path, config: dict[str, object], tokenizer: bytes) -> None:
    """Raises Mismatch where a directory has another model or another tokenizer."""
    theirs = read_json(directory / CONFIG)
    for key in sorted((config.keys() | theirs.keys()) - set(_INCIDENTAL)):
        if _plain(config.get(key)) != _plain(theirs.get(key)):
            raise Mismatch(
                f"checkpoint of another model: {key} in {directory / CONFIG} is {theirs.get(key)!r}, the engine's is {config.get(key)!r}"
            )
    if (directory / TOKENIZER).read_bytes() != tokenizer:
        raise Mismatch(f"checkpoint of another model: {directory / TOKENIZER} is another tokenizer")
    for path in weight_files(directory):
        try:
            with safe_open(path, framework="pt"):
                pass  # a file that was cut off has a header that does not fit
        except SafetensorError as error:
            raise Mismatch(f"{path} is damaged: {error}") from error


def _plain(value: object) -> object:
    """Treats an absent value, null and false as equal: programs differ in which defaults they write."""
    return None if value is False else value


def end_tokens(directory: Path, of_tokenizer: int | None) -> list[int]:
    """Returns the tokens that end a completion."""
    found: list[object] = []
    for name in (GENERATION, CONFIG):
        if (directory / name).is_file():
            value = read_json(directory / name).get("eos_token_id")
            found += value if isinstance(value, list) else [value]
    found.append(of_tokenizer)
    ends = [token for token in dict.fromkeys(found) if isinstance(token, int)]
    if not ends:
        raise Mismatch(f"{directory} names no end token: add eos_token_id to {GENERATION}")
    return ends


def write(
    directory: Path,
    tensors: Iterator[tuple[str, torch.Tensor]],
    optimizer: Mapping[str, torch.Tensor | Rows] | None,
    config: dict[str, object],
    carried: dict[str, bytes],
    written: Callable[[int], None] = lambda files: None,
    flush: bool = True,
    sums: bool = False,
) -> None:
    """Writes a checkpoint into an empty directory. The caller renames the directory.

    Without flush, the caller flushes the files to disk as well. With sums, SHA256SUMS has the sums of the large files.
    """
    weights = dict(tensors)
    changed = {key: value for key, value in config.items() if key not in ("torch_dtype", "dtype")}
    changed["torch_dtype"] = str(next(iter(weights.values())).dtype).removeprefix("torch.")
    files = 0
    for name, text in {**carried, CONFIG: (json.dumps(changed, indent=2) + "\n").encode()}.items():
        _write_text(directory / name, text, flush)
        files += 1
        written(files)
    large = _shards(WEIGHTS, weights, {"format": "pt"})
    if len(large) > 1:
        _write_text(directory / INDEX, _index(large), flush)
    if optimizer is not None:
        large += optimizer_files(optimizer)
    lines: list[str] = []
    for line in _write_files(directory, large, flush, 0, sums):
        lines.append(line)
        files += 1
        written(files)
    if sums:
        _write_text(directory / SUMS, "".join(sorted(lines)).encode(), flush)
    if flush:
        sync(directory)


def write_rows(directory: Path, optimizer: Mapping[str, torch.Tensor | Rows], rank: int) -> None:
    """Writes the rows of a rank above 0 into the files that rank 0 writes."""
    for _ in _write_files(directory, optimizer_files(optimizer), False, rank, False):
        pass


def _write_files(directory: Path, wanted: list[File], flush: bool, rank: int, sums: bool) -> Iterator[str]:
    """Writes files of tensors side by side, and yields the lines of each when it is written."""
    # Copies from a device, writes and sums release the interpreter's lock.
    with ThreadPoolExecutor(_FILES_AT_A_TIME, initializer=yield_to_others) as pool:
        tasks = [pool.submit(write_tensors, directory / name, part, about, flush, rank, sums) for name, part, about in wanted]
        for done in as_completed(tasks):
            yield done.result()


def optimizer_files(optimizer: Mapping[str, torch.Tensor | Rows]) -> list[File]:
    """Returns name, tensors and metadata of the files of an optimizer's state."""
    # The embedded engine reads the optimizer's file, but has no masters.
    masters = {name: tensor for name, tensor in optimizer.items() if name.startswith(_MASTER)}
    state = {n: t for n, t in optimizer.items() if n != _STEP and n not in masters}
    step = optimizer[_STEP]
    assert isinstance(step, torch.Tensor)
    about = {_STEP: str(int(step.item()))}
    return [*_shards(OPTIMIZER, state, about), *(_shards(MASTERS, masters, {"format": "pt"}) if masters else ())]


def _shards(name: str, tensors: Mapping[str, torch.Tensor | Rows], about: dict[str, str]) -> list[File]:
    """Divides tensors among files, which are written, summed and compared side by side."""
    shards: list[dict[str, torch.Tensor | Rows]] = [{}]
    held = 0
    for key, tensor in sorted(tensors.items()):
        values = tensor.tensor if isinstance(tensor, Rows) else tensor
        size = math.prod(tensor.shape) * values.itemsize
        if shards[-1] and held + size > SHARD_BYTES:
            shards.append({})
            held = 0
        shards[-1][key] = tensor
        held += size
    if len(shards) == 1:
        return [(name, shards[0], about)]
    return [(_shard_name(name, i, len(shards)), shard, about) for i, shard in enumerate(shards)]


def _index(shards: list[File]) -> bytes:
    """Returns the content of the index that Hugging Face's libraries look for beside shards of weights."""
    size = sum(t.numel() * t.itemsize for _, part, _ in shards for t in part.values() if isinstance(t, torch.Tensor))
    files = {tensor: name for name, part, _ in shards for tensor in part}
    return (json.dumps({"metadata": {"total_size": size}, "weight_map": files}, indent=2, sort_keys=True) + "\n").encode()


def _shard_name(name: str, index: int, count: int) -> str:
    """Names a shard as Hugging Face names those of weights."""
    return f"{Path(name).stem}-{index + 1:05d}-of-{count:05d}{Path(name).suffix}"


def _state_files(directory: Path, name: str) -> list[Path]:
    """Returns the file of a part of the optimizer's state, or its shards, or none."""
    if (directory / name).is_file():
        return [directory / name]
    shards = sorted(directory.glob(f"{Path(name).stem}-*-of-*{Path(name).suffix}"))
    wanted = [directory / _shard_name(name, i, len(shards)) for i in range(len(shards))]
    if shards != wanted:
        raise Mismatch(f"{directory} has the shards {', '.join(p.name for p in shards)}: some are missing")
    return shards


def read_optimizer(directory: Path, rows: Callable[[str], slice] | None = None) -> Tensors | None:
    """Returns the optimizer's state; None where the directory has none. rows gives the rows of a weight."""
    tensors: Tensors = {}
    steps = set()
    for path in _state_files(directory, OPTIMIZER):
        part, metadata = read_tensors(path, rows)
        tensors.update(part)
        steps.add(metadata.get(_STEP, ""))
        if len(steps) > 1 or not metadata.get(_STEP, "").isdecimal():
            raise Mismatch(f"{path} has the step {metadata.get(_STEP, '')!r} in its metadata")
    if not steps:
        return None
    for path in _state_files(directory, MASTERS):
        tensors.update(read_tensors(path, rows)[0])
    tensors[_STEP] = torch.tensor(int(steps.pop()), dtype=torch.int64)
    return tensors


def prepare(source: Path, directory: Path) -> None:
    """Copies the checkpoint of another program into an empty directory. Shards become one file."""
    require(source)
    for name, text in read_carried(source).items():
        _write_text(directory / name, text)
    _write_text(directory / CONFIG, (source / CONFIG).read_bytes())
    if (source / WEIGHTS).is_file():
        shutil.copyfile(source / WEIGHTS, directory / WEIGHTS)
        sync(directory / WEIGHTS)
    else:
        merged: Tensors = {}
        for path in weight_files(source):
            part, _ = read_tensors(path)
            if twice := sorted(merged.keys() & part.keys()):
                raise Mismatch(f"{path}: {twice[0]} is also in another shard")
            merged.update(part)
        write_tensors(directory / WEIGHTS, merged, {"format": "pt"}, flush=True)
    sync(directory)


@contextmanager
def new_directory(path: Path) -> Iterator[Path]:
    """Gives an empty directory that is renamed to path at the end. After an error it is removed."""
    if path.exists():
        raise FileExistsError(f"{path} exists already")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=".new-", dir=path.parent))
    try:
        yield temporary
        temporary.chmod(0o755)
        temporary.rename(path)
        sync(path.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def read_tensors(path: Path, rows: Callable[[str], slice] | None = None) -> tuple[Tensors, dict[str, str]]:
    """Returns the tensors and the metadata of a file. The names that rows gets have no kind such as "m." before them."""
    try:
        with safe_open(path, framework="pt") as file:
            return {name: _read(file, name, rows) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except SafetensorError as error:
        raise Mismatch(f"{path} is damaged: {error}") from error


def _read(file: Any, name: str, rows: Callable[[str], slice] | None) -> torch.Tensor:
    chosen = slice(None) if rows is None else rows(name.partition(".")[2])
    if chosen == slice(None):
        whole: torch.Tensor = file.get_tensor(name)
        return whole
    some: torch.Tensor = file.get_slice(name)[chosen.start : max(chosen.stop, chosen.start + 1)]  # safetensors reads no empty range
    return some[: chosen.stop - chosen.start]


def _write_text(path: Path, text: bytes, flush: bool = True) -> None:
    with open(path, "xb") as file:
        file.write(text)
        file.flush()
        if flush:
            os.fsync(file.fileno())


def sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
