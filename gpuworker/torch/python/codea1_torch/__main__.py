"""The commands of the package: python -m codea1_torch COMMAND."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from . import __version__


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="codea1_torch", description=__doc__)
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True)

    serve = commands.add_parser("serve", help="serve the parent process; gpuworker/torch/PROTOCOL.md")
    serve.add_argument("--requests", type=int, default=3, help="file descriptor to read requests from")
    serve.add_argument("--answers", type=int, default=4, help="file descriptor to write answers to")

    commands.add_parser("doctor", help="print as JSON what this Python can run")

    prepare = commands.add_parser("prepare", help="copy a checkpoint into an empty directory, after a check")
    prepare.add_argument("source", help="checkpoint directory, or a name on the Hugging Face hub")
    prepare.add_argument("directory", type=Path)

    from . import sft

    sft.add_arguments(commands.add_parser("sft", help="train a checkpoint on written responses"))

    score = commands.add_parser("score", help="score chats with a reward model, for a judge")
    if "score" in arguments[:1]:  # the import takes seconds
        from . import score as scoring

        scoring.add_arguments(score)

    flags = parser.parse_args(arguments)
    if flags.command == "serve":
        from .serve import serve as run

        run(flags.requests, flags.answers)
        return 0
    if flags.command == "doctor":
        from .doctor import main as report

        return report()
    from .errors import EngineError

    try:
        if flags.command == "prepare":
            from .start import prepare as copy

            copy(flags.source, flags.directory)
        elif flags.command == "score":
            return scoring.main(flags)
        else:
            sft.main(flags)
    except (EngineError, OSError) as error:
        print(f"codea1_torch {flags.command}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
