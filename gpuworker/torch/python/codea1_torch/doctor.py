"""The libraries and devices of this Python, as JSON for `codea1 doctor`."""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import platform

from . import __version__

_LIBRARIES = ("torch", "transformers", "safetensors", "msgpack", "jinja2", "peft")
_OPTIONAL = ("peft",)  # for LoRA


def report() -> dict[str, object]:
    found: dict[str, object] = {"package": __version__, "python": platform.python_version()}
    versions: dict[str, str] = {}
    missing: dict[str, str] = {}
    for name in _LIBRARIES:
        try:
            importlib.import_module(name)
            versions[name] = importlib.metadata.version(name)
        except Exception as error:  # an installed library may fail in any way
            if name not in _OPTIONAL:
                missing[name] = f"{type(error).__name__}: {error}"
    found["libraries"], found["missing"] = versions, missing
    if "torch" in versions:
        found.update(_devices())
        found["vllm"] = _vllm()
    return found


def _vllm() -> str:
    """Returns why vLLM cannot be used, or nothing. Its import takes long and writes to standard output."""
    from .errors import BadRequest
    from .vllm_sampling import require_installed

    try:
        require_installed()
    except BadRequest as error:
        return str(error)
    return ""


def _devices() -> dict[str, object]:
    import torch

    devices = []
    for index in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
        free, total = torch.cuda.mem_get_info(index)
        devices.append({"name": torch.cuda.get_device_name(index), "free": free, "total": total})
    return {"cuda": torch.version.cuda or "", "devices": devices}


def main() -> int:
    print(json.dumps(report()))
    return 0
