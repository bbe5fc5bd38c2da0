"""Sampling by vLLM, in processes of its own beside the learner.

vLLM starts with random weights and gets those of a model by its interface for weight transfer, backend ipc: the workers read them
in the memory of this process. While the learner works, vLLM sleeps at level 2, which frees its weights and its cache.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import importlib.util
import math
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from packaging.version import Version
from torch.multiprocessing.reductions import reduce_tensor

from . import logs
from .errors import BadRequest, Cancelled, Diverged, EngineError, OutOfMemory, SamplerLost
from .model import Model
from .sampling import Completion, Params, Request, check
from .vllm_child import as_main

OLDEST, NEWEST = "0.22.1", "0.26.0"
SLOTS = 1024  # completions at a time
INSTALL = "`pip install './gpuworker/torch/python[vllm]'` in the source of codea1 installs it, and --sampler engine samples without it"

_CHUNK = 1 << 30  # bytes of weights that are copied to other GPUs at a time
_LOOK_SECONDS = 0.5  # between two looks for cancellation
_MEMORY_SECONDS = 600  # of waiting for another process that frees memory

T = TypeVar("T")
Tensors = list[tuple[str, torch.Tensor]]


@dataclass(frozen=True)
class VllmOptions:
    """memory is the share of each GPU that vLLM may use."""

    memory: float = 0.3
    tensor_parallel: int = 1
    data_parallel: int = 1

    @property
    def gpus(self) -> int:
        return self.tensor_parallel * self.data_parallel

    def check(self, device: str) -> None:
        """Raises BadRequest where this machine cannot run vLLM so."""
        if not 0 < self.memory < 1:
            raise BadRequest(f"vLLM's share of the GPU memory is {self.memory}, want one between 0 and 1")
        if self.tensor_parallel < 1 or self.data_parallel < 1:
            raise BadRequest(f"vLLM's parallelism {self.tensor_parallel} by {self.data_parallel} is below 1")
        require_installed()
        if torch.device(device).type != "cuda":
            raise BadRequest(f"--sampler vllm needs a GPU, the device is {device}: take --sampler engine")
        first, there = torch.device(device).index or 0, torch.cuda.device_count()
        if first + self.gpus > there:
            raise BadRequest(f"vLLM with {self.tensor_parallel} by {self.data_parallel} GPUs from {device}: this machine has {there}")


def require_installed() -> None:
    """Raises BadRequest where vLLM is missing, or has a version that this package does not know."""
    try:
        installed = importlib.metadata.version("vllm")
    except importlib.metadata.PackageNotFoundError as error:
        raise BadRequest(f"--sampler vllm needs the Python package vllm, {OLDEST} to {NEWEST}; {INSTALL}") from error
    if not Version(OLDEST) <= Version(Version(installed).public) <= Version(NEWEST):
        raise BadRequest(f"--sampler vllm: vllm {installed} is installed, want {OLDEST} to {NEWEST}; {INSTALL}")
    if importlib.util.find_spec("ray") is None:
        raise BadRequest(f"--sampler vllm: vLLM's weight transfer imports the Python package ray, which is missing; {INSTALL}")


class VllmSampler:
    """Samples completions as sampling.Sampler does. A completion may depend on the others of its batch by rounding."""

    def __init__(self, directory: Path, end_tokens: Sequence[int], device: torch.device, options: VllmOptions) -> None:
        self.slots = SLOTS
        self._directory, self._ends, self._options = directory, sorted(set(end_tokens)), options
        first = device.index or 0
        self._devices = [torch.device("cuda", i) for i in range(first, first + options.gpus)]
        self._model: Model | None = None
        self._stale = True  # vLLM has other weights than the model
        self._loop = asyncio.new_event_loop()
        self._engine: Any = None
        self._filtered = False  # by top-p or top-k, when the engine started
        self._asleep = False
        self._slept = 0  # bytes of each GPU that sleeping has freed
        self._count = 0  # of requests

    def use(self, model: Model) -> None:
        """Chooses the model to sample from."""
        self._stale = self._stale or model is not self._model
        self._model = model

    def weights_changed(self) -> None:
        self._stale = True

    def release(self) -> None:
        """Frees the memory of GPUs that vLLM uses."""
        if self._engine is None or self._asleep:
            return
        before = self._free()
        self._run(self._engine.sleep(level=2))
        self._asleep = self._stale = True
        self._slept = max(0, self._free() - before)

    def sample(
        self,
        requests: Sequence[Request],
        params: Params,
        *,
        cancelled: Callable[[], bool] = lambda: False,
        progress: Callable[[int], None] = lambda tokens: None,
    ) -> list[list[Completion]]:
        """Return a completion for each seed of each request, in their order, as sampling.Sampler.sample does."""
        assert self._model is not None
        check(requests, params, self._model)
        require_log_probs(params)
        if not requests:
            return []
        self._make_ready(params, cancelled)
        return self._run(self._sample(requests, params, cancelled, progress))

    # --- the engine

    def _make_ready(self, params: Params, cancelled: Callable[[], bool]) -> None:
        if self._engine is not None and self._filtered != filtered(params):
            raise BadRequest("vLLM cannot turn top-p or top-k on or off between two samplings")
        if self._engine is None:
            self._filtered = filtered(params)
            self._wait_for_memory(int(self._options.memory * torch.cuda.mem_get_info(self._devices[0])[1]), cancelled)
            self._run(self._start())
        if self._asleep:
            self._wait_for_memory(self._slept, cancelled)
            self._run(self._engine.wake_up(["weights"]))
        if self._stale:
            began = time.monotonic()
            self._run(self._send())
            logs.info("weights handed to vLLM", seconds=round(time.monotonic() - began, 3))
        if self._asleep:
            self._run(self._engine.wake_up(["kv_cache"]))
            self._asleep = False

    async def _start(self) -> None:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        # vLLM's sockets carry pickled objects, so no other user may open them. They are connected when the engine has started.
        private = tempfile.mkdtemp(prefix="codea1-vllm-")
        os.environ.update(environment(self._devices, visible, private))
        try:
            with as_main():
                from vllm.engine.arg_utils import AsyncEngineArgs
                from vllm.v1.engine.async_llm import AsyncLLM

                arguments = engine_arguments(self._directory, self._model_dtype(), self._options, self._filtered)
                self._engine = AsyncLLM.from_engine_args(AsyncEngineArgs(**arguments))
                await self._engine.collective_rpc("init_weight_transfer_engine", kwargs={"init_info": {}})
        except Exception as error:
            raise EngineError(f"vLLM did not start, the log says why: {type(error).__name__}: {error}") from error
        finally:
            shutil.rmtree(private, ignore_errors=True)
            if visible is None:
                del os.environ["CUDA_VISIBLE_DEVICES"]
            else:
                os.environ["CUDA_VISIBLE_DEVICES"] = visible

    def _model_dtype(self) -> str:
        assert self._model is not None
        return str(self._model.dtype).removeprefix("torch.")

    async def _send(self) -> None:
        """Gives vLLM the weights of the model, without a copy on the model's GPU."""
        from vllm.distributed.weight_transfer.base import WeightTransferUpdateRequest

        assert self._model is not None
        tensors = list(self._model.tensors())
        torch.cuda.synchronize(self._model.device)
        await self._engine.start_weight_update()
        for chunk in chunks(tensors, _CHUNK) if len(self._devices) > 1 else [tensors]:
            there = {str(torch.cuda.get_device_properties(d).uuid): [t.to(d) for _, t in chunk] for d in self._devices}
            for device in self._devices:
                torch.cuda.synchronize(device)
            await self._engine.update_weights(WeightTransferUpdateRequest(update_info=update_info(chunk, there)))
        await self._engine.finish_weight_update()
        await self._engine.reset_prefix_cache()  # of the weights before
        torch.cuda.ipc_collect()
        self._stale = False

    async def _sample(
        self, requests: Sequence[Request], params: Params, cancelled: Callable[[], bool], progress: Callable[[int], None]
    ) -> list[list[Completion]]:
        rows = []
        for request in requests:
            arguments = sampling_arguments(request, params, self._ends)
            rows.append([asyncio.ensure_future(self._complete(request.prompt, each)) for each in arguments])
        waiting = {task for row in rows for task in row}
        done = 0
        try:
            while waiting:
                ended, waiting = await asyncio.wait(waiting, timeout=_LOOK_SECONDS)
                done += sum(len(task.result().tokens) for task in ended)
                progress(done)
                if cancelled():
                    raise Cancelled("cancelled")
        finally:
            for task in waiting:
                task.cancel()  # which aborts the request
            await asyncio.gather(*waiting, return_exceptions=True)
        return [[task.result() for task in row] for row in rows]

    async def _complete(self, prompt: list[int], arguments: dict[str, Any]) -> Completion:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        self._count += 1
        params = SamplingParams(output_kind=RequestOutputKind.FINAL_ONLY, **arguments)
        last: Any = None
        async for output in self._engine.generate({"prompt_token_ids": prompt}, params, request_id=str(self._count)):
            last = output.outputs[0]
        return completion(last, self._ends)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs work of the engine to its end. An error of vLLM ends this process, because the state of vLLM is not known."""
        try:
            return self._loop.run_until_complete(work)
        except EngineError:
            raise
        except torch.OutOfMemoryError as error:
            raise OutOfMemory(f"the weights for vLLM: {error}") from error
        except Exception as error:
            raise SamplerLost(f"vLLM: {type(error).__name__}: {error}") from error

    def _free(self) -> int:
        torch.cuda.empty_cache()
        return min(int(torch.cuda.mem_get_info(device)[0]) for device in self._devices)

    def _wait_for_memory(self, needs: int, cancelled: Callable[[], bool]) -> None:
        """Waits until the memory for vLLM is free: the other model of a run may train meanwhile."""
        last = time.monotonic() + _MEMORY_SECONDS
        warned = False
        while (free := self._free()) < needs:
            if cancelled():
                raise Cancelled("cancelled")
            if time.monotonic() > last:
                raise OutOfMemory(
                    f"vLLM needs {needs / 2**30:.1f} GiB of each GPU, {free / 2**30:.1f} GiB are free: take a smaller --vllm-memory"
                )
            if not warned:
                logs.warning("vLLM waits for memory", needs=needs, free=free)
                warned = True
            time.sleep(_LOOK_SECONDS)


def environment(devices: Sequence[torch.device], visible: str | None, private: str) -> dict[str, str]:
    """Returns the environment variables of vLLM's processes."""
    names = visible.split(",") if visible else [str(i) for i in range(max(d.index for d in devices) + 1)]
    wanted = {
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_LOGGING_LEVEL": "WARNING",
        "VLLM_HOST_IP": "127.0.0.1",
        "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
    }
    return {
        **{name: os.environ.get(name, value) for name, value in wanted.items()},
        "VLLM_ENABLE_V1_MULTIPROCESSING": "1",  # ipc needs another process
        "VLLM_ALLOW_INSECURE_SERIALIZATION": "1",  # the handles of weights are pickled
        "VLLM_RPC_BASE_PATH": private,
        "CUDA_VISIBLE_DEVICES": ",".join(names[d.index] for d in devices),
    }


def engine_arguments(directory: Path, dtype: str, options: VllmOptions, filters: bool) -> dict[str, Any]:
    """Returns the arguments of vLLM's engine."""
    return {
        "model": str(directory),
        "load_format": "dummy",  # the weights come later
        "dtype": dtype,
        "skip_tokenizer_init": True,
        "generation_config": "vllm",  # none of the checkpoint's
        "gpu_memory_utilization": options.memory,
        "tensor_parallel_size": options.tensor_parallel,
        "data_parallel_size": options.data_parallel,
        "max_num_seqs": SLOTS,
        "max_num_batched_tokens": 16384,
        "max_cudagraph_capture_size": SLOTS,
        "enable_prefix_caching": True,  # completions share the prompt of their group
        "logprobs_mode": "raw_logprobs" if filters else "processed_logprobs",
        "enable_sleep_mode": True,
        "weight_transfer_config": {"backend": "ipc"},
        "disable_log_stats": True,
    }


def filtered(params: Params) -> bool:
    return params.top_p < 1 or params.top_k > 0


def require_log_probs(params: Params) -> None:
    """Raises BadRequest where vLLM has no log-probs after the temperature and before the filters, which training needs."""
    if filtered(params) and params.temperature != 1:
        raise BadRequest(
            f"--sampler vllm has the log-probs of training at temperature 1 or without top-p and top-k, not at temperature "
            f"{params.temperature} with top-p {params.top_p} and top-k {params.top_k}: take --sampler engine"
        )


def sampling_arguments(request: Request, params: Params, end_tokens: Sequence[int]) -> list[dict[str, Any]]:
    """Returns the arguments of vLLM's SamplingParams for each completion of a request."""
    limits = request.limits or [params.max_tokens] * len(request.seeds)
    return [
        {
            "temperature": params.temperature,
            "top_p": params.top_p,
            "top_k": params.top_k,
            "max_tokens": limit,
            "seed": seed & (2**63 - 1),  # a signed number there, of which -1 means none
            "stop_token_ids": list(end_tokens),
            "ignore_eos": True,  # stop_token_ids has all end tokens
            "logprobs": 0,  # of the sampled token alone
            "flat_logprobs": True,
            "detokenize": False,
        }
        for seed, limit in zip(request.seeds, limits, strict=True)
    ]


def completion(output: Any, end_tokens: Sequence[int]) -> Completion:
    """Returns a completion of vLLM's output for it."""
    if output is None or output.finish_reason not in ("stop", "length"):
        raise RuntimeError(f"a completion ended with {output.finish_reason if output else 'nothing'}")
    tokens = list(output.token_ids)
    flat = output.logprobs
    log_probs = [float(flat.logprobs[i]) for i in flat.start_indices]  # the sampled token is the first of its position
    if len(tokens) != len(log_probs) or not tokens:
        raise RuntimeError(f"{len(tokens)} tokens have {len(log_probs)} log-probs")
    if any(math.isnan(p) for p in log_probs):
        raise Diverged("the logits are not finite")
    return Completion(tokens, [min(0.0, p) for p in log_probs], "stop" if tokens[-1] in end_tokens else "length")


def update_info(tensors: Tensors, there: dict[str, list[torch.Tensor]]) -> dict[str, Any]:
    """Returns an update of weights. there has their copies by the GPU's UUID."""
    return {
        "names": [name for name, _ in tensors],
        "dtype_names": [str(t.dtype).removeprefix("torch.") for _, t in tensors],
        "shapes": [list(t.shape) for _, t in tensors],
        "ipc_handles": [{uuid: reduce_tensor(copies[i])[1] for uuid, copies in there.items()} for i in range(len(tensors))],
    }


def chunks(tensors: Tensors, most: int) -> list[Tensors]:
    """Divides tensors into parts of at most so many bytes, or of one tensor."""
    out: list[Tensors] = []
    size = most
    for name, tensor in tensors:
        if size + tensor.nbytes > most:
            out.append([])
            size = 0
        out[-1].append((name, tensor))
        size += tensor.nbytes
    return out
