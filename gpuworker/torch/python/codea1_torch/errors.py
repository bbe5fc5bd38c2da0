"""The errors that the parent process tells apart."""


class EngineError(Exception):
    """An error with a code of PROTOCOL.md."""

    code = "internal"
    fatal = False  # the process ends after it


class RankFailed(EngineError):
    """An error of one rank: the others wait for it in a call that never ends."""

    fatal = True

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class BadRequest(EngineError):
    code = "bad_request"


class PromptTooLong(EngineError):
    code = "prompt_too_long"


class MissingCheckpoint(EngineError):
    code = "missing_checkpoint"


class Mismatch(EngineError):
    """A checkpoint of another model, or one that the engine cannot run."""

    code = "mismatch"


class NoReference(EngineError):
    code = "no_reference"


class Diverged(EngineError):
    """The model's numbers are not finite."""

    code = "diverged"


class OutOfMemory(EngineError):
    code = "out_of_memory"


class Cancelled(EngineError):
    code = "cancelled"


class SamplerLost(Exception):
    """vLLM has failed. Its processes are in an unknown state, so this one ends with them, and the parent starts another."""
