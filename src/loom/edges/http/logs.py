"""Log lines as JSON: what happened, to which request, never what was stored or sent."""

import json
import logging
import sys
import traceback
from datetime import UTC, datetime

EXTRAS = ("request_id", "op", "status", "duration_ms", "job", "attempt", "count")
"""The fields a log call may add; anything else in `extra` is dropped."""

CAUSES_MAX = 5


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, logger, message, and the fields of `EXTRAS` that are there.

    An exception shows its types and places, not its message: that can hold
    what a caller sent (a database's error quotes values).
    """

    def format(self, record: logging.LogRecord) -> str:
        """`record` as one line of JSON."""
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC)
            .isoformat(timespec="milliseconds")
            .replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: record.__dict__[name] for name in EXTRAS if name in record.__dict__}
        if record.exc_info and record.exc_info[1] is not None:
            line["error"] = places(record.exc_info[1])
        return json.dumps(line, ensure_ascii=False, default=str)


def places(error: BaseException) -> list[dict[str, object]]:
    """Where `error` and what led to it came from: type and stack of each, newest first."""
    found: list[dict[str, object]] = []
    current: BaseException | None = error
    while current is not None and len(found) < CAUSES_MAX:
        frames = traceback.extract_tb(current.__traceback__)
        found.append(
            {
                "type": f"{type(current).__module__}.{type(current).__qualname__}",
                "stack": [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames],
            }
        )
        current = current.__cause__ or current.__context__
    return found


def log_to_stderr(level: str = "INFO") -> None:
    """Send every logger's lines to standard error in this form; a server's process calls it once."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    # These repeat each request, with its path or its headers, or what `loom serve` says itself.
    for name in ("uvicorn.access", "uvicorn.error", "mcp", "httpx", "httpx2", "httpcore", "httpcore2"):
        logging.getLogger(name).setLevel(logging.WARNING)
