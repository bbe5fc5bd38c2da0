"""Log lines on standard error as JSON, one object a line. The parent turns them into its own log."""

from __future__ import annotations

import json
import logging
import sys

LOGGER = logging.getLogger("codea1_torch")


class _Lines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {"level": record.levelname.lower(), "message": record.getMessage()}
        if record.name != LOGGER.name:
            line["logger"] = record.name
        fields = getattr(record, "fields", None)
        if isinstance(fields, dict):
            line.update(fields)
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def to_standard_error() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    LOGGER.setLevel(logging.INFO)
    logging.captureWarnings(True)


def info(message: str, **fields: object) -> None:
    LOGGER.info(message, extra={"fields": fields})


def warning(message: str, **fields: object) -> None:
    LOGGER.warning(message, extra={"fields": fields})
