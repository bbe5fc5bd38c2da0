"""The engine: one policy of a run on one device, with its sampler, its learner and its reference.

The sampler and the learner share one set of weights as long as both want the same checkpoint. An update changes the
weights of the learner. A sampling that still wants the checkpoint before it gets a model of its own, and shares again
as soon as it is told to load the checkpoint that the learner saved.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import torch
from safetensors import SafetensorError

from . import checkpoint, logs
from .broadcast import Offer, Receiver
from .chat import Chat
from .errors import BadRequest, Diverged, Mismatch, MissingCheckpoint, NoReference, OutOfMemory
from .learning import Learner, Sequence, UpdateConfig, UpdateStats
from .lora import Adapter, Lora
from .model import Config, Model
from .optimizer import KINDS
from .ranks import Ranks
from .sampling import Completion, Params, Request, Sampler
from .vllm_sampling import VllmOptions, VllmSampler

if TYPE_CHECKING:
    from .sharding import Shards

Cancelled = Callable[[], bool]
T = TypeVar("T")

# Work is not divided further after an error for lack of memory below these.
_LEAST_MICRO_TOKENS = 64
_LEAST_SLOTS = 1


def choose_device(name: str, rank: int = 0, size: int = 1) -> str:
    """Returns the device of a rank for a setting: auto, cpu, cuda or cuda:N. A rank has the GPU after that of the rank before it."""
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise BadRequest(f"device {name!r} is unknown; want auto, cpu, cuda or cuda:N") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise BadRequest(f"device {name!r}: this torch finds no CUDA; codea1 doctor says what to do")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise BadRequest(f"device {name!r}: this machine has {torch.cuda.device_count()} CUDA devices")
    if device.type not in ("cpu", "cuda"):
        raise BadRequest(f"device {name!r} is not supported; want auto, cpu, cuda or cuda:N")
    if size > 1 and device.type == "cuda":
        first, count = device.index or 0, torch.cuda.device_count()
        if first + size > count:
            raise BadRequest(f"--train-gpus {size} from cuda:{first}: this machine has {count} CUDA devices")
        return f"cuda:{first + rank}"
    return name


@dataclass(frozen=True)
class Options:
    """The trained parameters, and the place of the state that the device has no room for."""

    optimizer_state: str = "device"  # one of optimizer.KINDS
    reference: str = "device"  # or "cpu"
    lora: Lora | None = None  # trains an adapter in place of all weights
    vllm: VllmOptions | None = None  # samples in place of the builtin sampler
    broadcast: bool = False  # weights to and from other processes without files
    halvings: int = 0  # of the tokens of a micro-batch, each after several ranks had no memory left

    def check(self) -> None:
        if self.optimizer_state not in KINDS:
            raise BadRequest(f"optimizer state {self.optimizer_state!r} is unknown; want one of {', '.join(KINDS)}")
        if self.reference not in ("device", "cpu"):
            raise BadRequest(f"place of the reference model {self.reference!r} is unknown; want device or cpu")
        if self.lora is not None:
            self.lora.check()


class Engine:
    def __init__(
        self,
        directory: Path,
        device: str = "auto",
        dtype: torch.dtype | None = None,
        options: Options | None = None,
        ranks: Ranks | None = None,
    ) -> None:
        """Opens a checkpoint. The type of the weights is float32 on the CPU and bfloat16 on a GPU, unless dtype is given.

        Several ranks train together. Only rank 0 samples. Each rank has all weights where an adapter is trained;
        otherwise the trained weights are divided among the ranks, and rank 0 has a copy of all for sampling.
        """
        self._options = options or Options()
        self._options.check()
        self._ranks = ranks or Ranks()
        self._divides = self._ranks.size > 1 and self._options.lora is None
        if self._divides and self._options.reference != "device":
            raise BadRequest("--reference cpu with --train-gpus above 1: the GPUs share the reference model; leave --reference at device")
        checkpoint.require(directory)
        self.device = choose_device(device, self._ranks.rank, self._ranks.size)
        if ":" in self.device:
            torch.cuda.set_device(self.device)  # Triton launches its kernels on the current device
        if self._options.vllm is not None:
            if self._ranks.size > 1:
                raise BadRequest("--sampler vllm with --train-gpus above 1: run rollouts and trainers as stages of their own")
            self._options.vllm.check(self.device)
        self.dtype = dtype or (torch.float32 if self.device == "cpu" else torch.bfloat16)
        with _mismatch(directory):
            self.config = Config.read(directory)
        self._chat = Chat(directory)
        if self._chat.size > self.config.vocabulary:
            raise Mismatch(f"the tokenizer of {directory} has {self._chat.size} tokens, its model {self.config.vocabulary}")
        self.end_tokens = checkpoint.end_tokens(directory, self._chat.end_token)
        self._json = checkpoint.read_json(directory / checkpoint.CONFIG)
        self._carried = checkpoint.read_carried(directory)

        self._model = self._read(directory)
        self._holds: object = checkpoint.identity(directory)  # of the weights in the model; None after an update
        self._learner: Learner | None = None
        self._reference: Model | None = None
        self._reference_shards: Shards | None = None
        self._opened = directory
        self._base: Model | None = None  # the weights that an adapter changes
        # The sampler's own model; None while it shares that of the learner.
        self._own: Model | None = None
        self._own_holds: object = None
        self._wanted = directory  # the checkpoint to sample from
        self._wanted_holds: object = self._holds
        self._sampler: Sampler | VllmSampler | None = None
        self._sampler_model: Model | None = None
        self._slots: int | None = None
        self._vllm: VllmSampler | None = None  # started once, used for both models
        self._offer = Offer()  # of saved weights, to samplers of other processes
        self._receiver = Receiver()  # of the weights of a trainer in another process

    @property
    def parameters(self) -> int:
        return sum(tensor.numel() for _, tensor in self._model.tensors())

    # --- sampling

    def encode_prompt(self, messages: list[dict[str, str]]) -> list[int]:
        return self._chat.encode_prompt(messages)

    def encode_response(self, text: str) -> list[int]:
        return self._chat.encode_response(text)

    def sample(
        self, requests: list[Request], params: Params, cancelled: Cancelled, progress: Callable[[int], None]
    ) -> list[list[Completion]]:
        sampler = self._ready_sampler()
        return self._fitting(
            "slots",
            lambda: sampler.sample(requests, params, cancelled=cancelled, progress=progress),
            lambda: self._halve_slots(sampler, sum(len(request.seeds) for request in requests)),
        )

    def texts(self, completions: list[Completion]) -> list[str]:
        """Returns the texts of completions without their end tokens."""
        return self._chat.decode([c.tokens[:-1] if c.finish == "stop" else c.tokens for c in completions])

    def load_weights(self, directory: Path) -> None:
        """Chooses the checkpoint to sample from."""
        self._require_same(directory)
        holds = checkpoint.identity(directory)
        if self._learner is None and not self._ranks.any(self._own is not None):
            self._load_model(directory, holds, self._receiver if self._options.broadcast and self._ranks.size == 1 else None)
        self._wanted, self._wanted_holds = directory, holds
        if holds == self._holds and self._own is not None:
            self._release()
            self._own, self._own_holds, self._sampler, self._sampler_model = None, None, None, None

    def _ready_sampler(self) -> Sampler | VllmSampler:
        """Returns the sampler of the wanted checkpoint."""
        model = self._model
        if self._wanted_holds != self._holds:
            checkpoint.require(self._wanted)
            if checkpoint.identity(self._wanted) != self._wanted_holds:
                raise MissingCheckpoint(f"{self._wanted} is another checkpoint than the one that was loaded")
            if self._own is None:
                self._own = self._read(self._wanted)
            elif self._own_holds != self._wanted_holds:
                self._own_holds = None
                with _mismatch(self._wanted):
                    self._own.load_tensors(self._wanted)
                if self._sampler is not None:
                    self._sampler.weights_changed()
            self._own_holds = self._wanted_holds
            model = self._own
        if self._sampler is None or self._sampler_model is not model:
            self._release()
            self._sampler = self._sampler_of(model)
            self._sampler_model = model
        return self._sampler

    def _sampler_of(self, model: Model) -> Sampler | VllmSampler:
        if self._options.vllm is None:
            return Sampler(model, self.end_tokens, slots=self._slots)
        if self._vllm is None:
            self._vllm = VllmSampler(self._opened, self.end_tokens, model.device, self._options.vllm)
        self._vllm.use(model)
        return self._vllm

    def _halve_slots(self, sampler: Sampler | VllmSampler, completions: int) -> str | None:
        slots = min(sampler.slots, completions) // 2
        sampler.release()
        if slots < _LEAST_SLOTS:
            return None
        sampler.slots = self._slots = slots
        return f"sampling continues with {slots} completions at a time"

    # --- training

    def log_probs(self, reference: bool, sequences: list[Sequence], temperature: float, cancelled: Cancelled) -> list[list[float]]:
        learner = self._ready_learner()
        model = self._reference if reference else learner.model
        if model is None:
            raise NoReference("no reference policy is loaded")
        return self._fitting(
            "log-probs",
            lambda: learner.log_probs(model.moved(self.device), sequences, temperature, cancelled=cancelled),
            lambda: self._halve_micro_tokens(learner, sequences),
        )

    def update(self, sequences: list[Sequence], config: UpdateConfig, cancelled: Cancelled) -> UpdateStats:
        learner = self._ready_learner()

        def run() -> UpdateStats:
            # Set before the first weight changes: an error may come after some of them did.
            before, self._holds = self._holds, None
            self._weights_changed()
            try:
                return learner.update(sequences, config, cancelled=cancelled)
            except BadRequest:
                self._holds = before
                raise

        stats = self._fitting("update", run, lambda: self._halve_micro_tokens(learner, sequences))
        numbers = (stats.loss, stats.kl, stats.clip_fraction, stats.ratio_mean, stats.entropy, stats.grad_norm)
        if not all(map(math.isfinite, numbers)):
            raise Diverged(f"loss {stats.loss}, gradient norm {stats.grad_norm}, KL {stats.kl}")
        return stats

    def save(self, directory: Path, progress: Callable[[int], None] = lambda files: None) -> None:
        learner = self._ready_learner() if self._options.lora else self._learner
        if learner and learner.give_weights(self._model):
            self._weights_changed()
        optimizer = learner.optimizer_tensors() if learner else None
        adapter = learner.adapter if learner else None
        whole = None if adapter else optimizer
        if self._ranks.rank > 0:
            if whole:
                checkpoint.write_rows(directory, whole, self._ranks.rank)
            self._holds = None  # rank 0 may still write
            return
        sums = self._ranks.size == 1  # the other ranks may still write
        checkpoint.write(directory, self._model.tensors(), whole, self._json, self._carried, progress, flush=False, sums=sums)
        if adapter:
            adapter.save(directory, optimizer)
        self._holds = checkpoint.identity(directory)
        if self._options.broadcast:
            self._offer.take(directory.parent, self._holds, self._model)

    def export(self, directory: Path) -> None:
        """Writes the weights, and the adapter where one is trained, into an empty directory without the optimizer's state."""
        if self._learner is not None and self._learner.adapter:
            self._learner.adapter.save(directory, None)
        checkpoint.write(directory, self._model.tensors(), None, self._json, self._carried)

    def initialize(self, seed: int) -> None:
        """Draws new weights."""
        self._model.initialize(seed)
        self._holds = None
        self._weights_changed()

    def load(self, directory: Path) -> None:
        """Loads the weights to train, and the optimizer's state where the directory has one."""
        self._require_same(directory)
        learner = self._ready_learner()
        with self._ranks.agreeing():
            optimizer = None if learner.adapter else checkpoint.read_optimizer(directory, learner.rows)
        self._load_model(directory, checkpoint.identity(directory))
        learner.take_weights(self._model)
        with self._ranks.agreeing(), _mismatch(directory):
            learner.load_optimizer(learner.adapter.load(directory) if learner.adapter else optimizer)

    def load_reference(self, directory: Path) -> None:
        self._require_same(directory)
        if self._options.lora and checkpoint.identity(directory) == checkpoint.identity(self._opened):
            self._ready_learner()
            self._reference = self._base
            return
        if self._divides:
            with self._ranks.agreeing():
                whole = self._read(directory)
            if self._reference_shards is None:
                from .sharding import Shards

                self._reference_shards = Shards(self.config, self._ranks, self.device, self.dtype, self.dtype)
                self._reference = self._reference_shards.model
            self._reference_shards.scatter(whole)
            return
        if self._reference is self._base:
            self._reference = None
        if self._reference is not None:
            with _mismatch(directory):
                self._reference.load_tensors(directory)
            return
        self._reference = self._read_frozen(directory)

    def _read_frozen(self, directory: Path) -> Model:
        """Returns a model that is never trained, where the options want it."""
        if self._options.reference == "device":
            return self._read(directory)
        frozen = self._read(directory, "cpu")
        if self.device != "cpu":
            frozen.pin()
        return frozen

    def _ready_learner(self) -> Learner:
        self._release()
        if self._learner is None:
            if self._divides:
                from .sharding import ShardedLearner

                self._learner = ShardedLearner(self._model, self._ranks, self.device, optimizer_state=self._options.optimizer_state)
            else:
                adapter = None
                if self._options.lora:
                    self._base = self._read_frozen(self._opened)
                    adapter = Adapter(self._model, self._base, self._options.lora)
                self._learner = Learner(self._model, optimizer_state=self._options.optimizer_state, adapter=adapter, ranks=self._ranks)
            self._learner.halvings = self._options.halvings
        return self._learner

    def _halve_micro_tokens(self, learner: Learner, sequences: list[Sequence]) -> str | None:
        if self._ranks.size > 1:
            return None  # the other ranks wait within the pass, so all start again with Options.halvings
        tokens = sum(len(s.prompt) + len(s.tokens) for s in sequences)
        micro = min(learner.micro_tokens, tokens) // 2
        if micro < _LEAST_MICRO_TOKENS:
            return None
        learner.micro_tokens = micro
        return f"micro-batches now have {micro} tokens"

    # --- both

    def _require_same(self, directory: Path) -> None:
        with self._ranks.agreeing():
            checkpoint.require(directory)
            checkpoint.require_same(directory, self._json, self._carried[checkpoint.TOKENIZER])

    def _load_model(self, directory: Path, holds: object, receiver: Receiver | None = None) -> None:
        """Loads the weights of a checkpoint with an identity, unless the model has them: from a receiver or the files."""
        if not self._ranks.any(holds != self._holds):
            return
        with self._ranks.agreeing(), self._replacing(), _mismatch(directory):
            came = receiver is not None and receiver.receive(directory.parent, holds, self._model)
            if not came and self._model.device.type != "meta":
                self._model.load_tensors(directory)
        self._holds = holds
        self._weights_changed()

    def _read(self, directory: Path, device: str | None = None) -> Model:
        if self._divides and self._ranks.rank > 0:
            return Model(self.config, device="meta", dtype=self.dtype)
        with _mismatch(directory):
            return Model.load(directory, device=device or self.device, dtype=self.dtype)

    @contextmanager
    def _replacing(self) -> Iterator[None]:
        """Marks the weights as unknown while they are replaced."""
        before, self._holds = self._holds, None
        try:
            yield
        except Mismatch:
            self._holds = before  # shapes are compared before the first weight changes
            raise

    def _weights_changed(self) -> None:
        if self._sampler is not None and self._sampler_model is self._model:
            self._sampler.weights_changed()

    def _release(self) -> None:
        """Frees the memory of sampling: training needs it."""
        if self._sampler is not None:
            self._sampler.release()

    def _fitting(self, what: str, run: Callable[[], T], shrink: Callable[[], str | None]) -> T:
        """Repeats work that does not fit into memory in smaller parts."""
        while True:
            try:
                return run()
            except torch.OutOfMemoryError as error:
                full = str(error)
            # Outside of the except block, which keeps the tensors of the failed work alive.
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
            smaller = "other processes get the next weights by file" if self._ranks.size == 1 and self._offer.drop() else shrink()
            if smaller is None:
                raise OutOfMemory(f"{what}: the smallest part of the work does not fit into memory: {full}")
            logs.warning(f"out of memory: {smaller}", work=what)


@contextmanager
def _mismatch(directory: Path) -> Iterator[None]:
    """Turns the error about a checkpoint that the model code refuses into Mismatch."""
    try:
        yield
    except (ValueError, SafetensorError) as error:
        raise Mismatch(f"checkpoint {directory}: {error}") from error
    except FileNotFoundError as error:
        raise MissingCheckpoint(f"checkpoint {directory}: {error}") from error
