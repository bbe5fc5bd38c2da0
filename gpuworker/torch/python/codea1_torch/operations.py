"""The requests of PROTOCOL.md as calls of the engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from . import logs, workers
from .engine import Engine, Options, choose_device
from .errors import BadRequest, EngineError, OutOfMemory, RankFailed
from .learning import Sequence, UpdateConfig
from .lora import Lora
from .protocol import Frame, ProtocolError, pack, pack_ragged, unpack, unpack_ragged
from .ranks import Ranks
from .sampling import Params, Request
from .serve import Call, Handler
from .vllm_sampling import VllmOptions

_LOSSES = ("ppo", "sft")


class Operations:
    def __init__(self) -> None:
        self._opened: Engine | None = None
        self._ranks = Ranks()
        self._workers: workers.Workers | None = None

    def handlers(self) -> dict[str, Handler]:
        return {
            "open": self.open,
            "encode": self.encode,
            "sample": self.sample,
            "load_weights": self._on_all_ranks(self.load_weights),
            "log_probs": self._on_all_ranks(self.log_probs),
            "update": self._on_all_ranks(self.update),
            "save": self._on_all_ranks(self.save),
            "load": self._on_all_ranks(self.load),
            "load_reference": self._on_all_ranks(self.load_reference),
        }

    def _on_all_ranks(self, handler: Handler) -> Handler:
        """Forwards the requests of rank 0 to the others. An error that only one rank may have is fatal."""

        def run(frame: Frame, call: Call) -> Frame:
            if self._ranks.size == 1:
                return handler(frame, call)
            if self._workers:
                self._workers.send(frame)
            failed: EngineError | ProtocolError | None = None
            result: Frame = {}
            try:
                result = handler(frame, call)
            except OutOfMemory as error:
                message = f"rank {self._ranks.rank}: {error}; all ranks start again with micro-batches of half as many tokens"
                raise RankFailed(message, error.code) from error
            except (EngineError, ProtocolError) as error:
                failed = error
            except Exception as error:
                logs.LOGGER.exception("rank %d failed", self._ranks.rank)
                raise RankFailed(f"rank {self._ranks.rank}: {type(error).__name__}: {error}", EngineError.code) from error
            if self._workers:
                outcome = getattr(failed, "code", BadRequest.code) if failed else "result"
                self._workers.expect(_field(frame, "id", int), outcome)
            if failed:
                raise failed
            return result

        return run

    def open(self, frame: Frame, call: Call) -> Frame:
        if self._opened is not None:
            raise BadRequest("a checkpoint is open already")
        rank, size = _field(frame, "lora_rank", int), _field(frame, "train_gpus", int)
        options = Options(
            optimizer_state=_field(frame, "optimizer_state", str),
            reference=_field(frame, "reference", str),
            vllm=_vllm(frame),
            broadcast=bool(_field(frame, "broadcast", int)),
            halvings=_field(frame, "halvings", int),
            lora=Lora(rank, _number(frame, "lora_alpha"), tuple(_texts(frame, "lora_targets"))) if rank else None,
        )
        if "needs_gpu" in frame and "rank" not in frame:
            _require_memory(frame)
        if size > 1:
            self._join(frame, size, call)
        self._opened = engine = Engine(_directory(frame), _field(frame, "device", str), options=options, ranks=self._ranks)
        if self._workers:
            self._workers.expect(_field(frame, "id", int), "result")
        return {
            "device": engine.device,
            "dtype": str(engine.dtype).removeprefix("torch."),
            "architecture": engine.config.architecture,
            "parameters": engine.parameters,
        }

    def _join(self, frame: Frame, size: int, call: Call) -> None:
        """Starts the other ranks, or joins them as one of them."""
        own = _field(frame, "rank", int) if "rank" in frame else 0
        device = choose_device(_field(frame, "device", str), own, size)
        if own:
            store = Path(_field(frame, "store", str))
            workers.use_store(store)
        else:
            self._workers = workers.Workers(size, call.writer)
            self._workers.send(frame)
            store = self._workers.store
        self._ranks = Ranks.join(own, size, store, device)

    @property
    def _engine(self) -> Engine:
        if self._opened is None:
            raise BadRequest("no checkpoint is open")
        return self._opened

    def encode(self, frame: Frame, call: Call) -> Frame:
        roles, contents = _texts(frame, "roles"), _texts(frame, "contents")
        if len(roles) != len(contents):
            raise BadRequest(f"{len(roles)} roles for {len(contents)} contents")
        messages = [{"role": r, "content": c} for r, c in zip(roles, contents, strict=True)]
        return {"prompt": pack("i", self._engine.encode_prompt(messages))}

    def sample(self, frame: Frame, call: Call) -> Frame:
        prompts = unpack_ragged("i", frame.get("prompts"), "prompts")
        seeds = unpack_ragged("Q", frame.get("seeds"), "seeds")
        if len(prompts) != len(seeds):
            raise BadRequest(f"{len(prompts)} prompts for {len(seeds)} lists of seeds")
        requests = [Request(prompt=p, seeds=s) for p, s in zip(prompts, seeds, strict=True)]
        params = Params(
            temperature=_number(frame, "temperature"),
            top_p=_number(frame, "top_p"),
            top_k=_field(frame, "top_k", int),
            max_tokens=_field(frame, "max_tokens", int),
        )
        rows = self._engine.sample(requests, params, call.cancelled, call.progress)
        completions = [completion for row in rows for completion in row]
        return {
            "tokens": pack_ragged("i", [c.tokens for c in completions]),
            "log_probs": pack("f", (p for c in completions for p in c.log_probs)),
            "stopped": bytes(c.finish == "stop" for c in completions),
            "texts": self._engine.texts(completions),
        }

    def load_weights(self, frame: Frame, call: Call) -> Frame:
        self._engine.load_weights(_directory(frame))
        return {}

    def log_probs(self, frame: Frame, call: Call) -> Frame:
        policy = _field(frame, "policy", str)
        if policy not in ("current", "reference"):
            raise BadRequest(f"policy {policy!r} is unknown")
        sequences = _sequences(frame)
        found = self._engine.log_probs(policy == "reference", sequences, _number(frame, "temperature"), call.cancelled)
        return {"log_probs": pack("f", (p for row in found for p in row))}

    def update(self, frame: Frame, call: Call) -> Frame:
        loss = _field(frame, "loss", str)
        if loss not in _LOSSES:
            raise BadRequest(f"loss {loss!r} is unknown")
        config = UpdateConfig(
            loss=loss,
            clip_low=_number(frame, "clip_low"),
            clip_high=_number(frame, "clip_high"),
            dual_clip=_number(frame, "dual_clip"),
            log_ratio_clamp=_number(frame, "log_ratio_clamp"),
            kl_coef=_number(frame, "kl_coef"),
            temperature=_number(frame, "temperature"),
            learning_rate=_number(frame, "learning_rate"),
            weight_decay=_number(frame, "weight_decay"),
            beta1=_number(frame, "beta1"),
            beta2=_number(frame, "beta2"),
            epsilon=_number(frame, "epsilon"),
            grad_clip=_number(frame, "grad_clip"),
        )
        stats = self._engine.update(_sequences(frame), config, call.cancelled)
        return {
            "loss": float(stats.loss),
            "kl": float(stats.kl),
            "clip_fraction": float(stats.clip_fraction),
            "ratio_mean": float(stats.ratio_mean),
            "entropy": float(stats.entropy),
            "grad_norm": float(stats.grad_norm),
            "trained": int(stats.tokens),
        }

    def save(self, frame: Frame, call: Call) -> Frame:
        self._engine.save(_directory(frame), call.progress)
        return {}

    def load(self, frame: Frame, call: Call) -> Frame:
        self._engine.load(_directory(frame))
        return {}

    def load_reference(self, frame: Frame, call: Call) -> Frame:
        self._engine.load_reference(_directory(frame))
        return {}


def _sequences(frame: Frame) -> list[Sequence]:
    prompts = unpack_ragged("i", frame.get("prompts"), "prompts")
    tokens = unpack_ragged("i", frame.get("tokens"), "tokens")
    old = unpack_ragged("f", frame.get("old_probs"), "old_probs")
    reference = unpack_ragged("f", frame.get("ref_probs"), "ref_probs")
    weights = unpack_ragged("f", frame.get("weights"), "weights")
    advantages = unpack("d", frame.get("advantages"), "advantages")
    if not len(prompts) == len(tokens) == len(old) == len(reference) == len(weights) == len(advantages):
        raise BadRequest("the fields of the sequences have different lengths")
    return [
        Sequence(prompt=p, tokens=t, old_probs=o or None, ref_probs=r or None, advantage=a, weights=w or None)
        for p, t, o, r, a, w in zip(prompts, tokens, old, reference, advantages, weights, strict=True)
    ]


def _directory(frame: Frame) -> Path:
    return Path(_field(frame, "dir", str))


def _require_memory(frame: Frame) -> None:
    """Raises OutOfMemory where the models of this process cannot fit, before weights are read."""
    device = choose_device(_field(frame, "device", str))
    main, on_gpu = _field(frame, "main_memory", int), device != "cpu"
    wanted = [("main memory", _field(frame, "needs_beside_gpu" if on_gpu else "needs_cpu", int), main)]
    if on_gpu:
        free, total = torch.cuda.mem_get_info(device)
        wanted.append((device, _field(frame, "needs_gpu", int) + int(_number(frame, "needs_gpu_share") * total), free))
    for place, needs, free in wanted:
        if needs > free:
            raise OutOfMemory(
                f"the models of this process need at least {needs / 2**30:.1f} GiB of {place}, {free / 2**30:.1f} GiB are free: "
                "take smaller models, try --optimizer-state cpu or 8bit or --reference cpu or a smaller --vllm-memory, set --kl 0, "
                "or run the stages on several GPUs"
            )


def _vllm(frame: Frame) -> VllmOptions | None:
    sampler = _field(frame, "sampler", str)
    if sampler not in ("builtin", "vllm"):
        raise BadRequest(f"sampler {sampler!r} is unknown; want builtin or vllm")
    if sampler == "builtin":
        return None
    return VllmOptions(
        memory=_number(frame, "vllm_memory"),
        tensor_parallel=_field(frame, "vllm_tensor_parallel", int),
        data_parallel=_field(frame, "vllm_data_parallel", int),
    )


def _field(frame: Frame, name: str, kind: type) -> Any:
    value = frame.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise BadRequest(f"field {name} is a {type(value).__name__}, want a {kind.__name__}")
    return value


def _number(frame: Frame, name: str) -> float:
    value = frame.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise BadRequest(f"field {name} is a {type(value).__name__}, want a number")
    return float(value)


def _texts(frame: Frame, name: str) -> list[str]:
    value = frame.get(name)
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise BadRequest(f"field {name} is not a list of texts")
    return value
