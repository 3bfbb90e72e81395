"""Logging for the long-running processes: one event a line, either JSON or key=value.

Importing this module costs nothing; structlog is loaded when the first logger is asked for. Nothing
below may log to a file inside a mount of ours: the worker would wait for itself.
"""

import contextlib
import os
import sys
from typing import Any, Literal, TextIO, cast

Level = Literal["debug", "info", "warning", "error"]
_LEVELS: dict[str, int] = {"debug": 10, "info": 20, "warning": 30, "error": 40}


def configure(*, path: str | None = None, level: Level = "info", stream: TextIO | None = None) -> TextIO:
    """Send every event from now on to `path`, appended as JSON lines, or else as key=value to `stream`.

    `stream` is stderr by default. Returns what is written to, for whoever reconfigures later to close: a
    file that was moved away (logrotate) is followed by calling this again.
    """
    import structlog

    processors: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
    ]
    if path is not None:
        processors += [
            structlog.processors.dict_tracebacks,
            structlog.processors.JSONRenderer(sort_keys=False, default=repr),
        ]
        target: TextIO = os.fdopen(
            os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600), "w", buffering=1
        )
    else:
        processors += [
            structlog.processors.format_exc_info,
            structlog.processors.LogfmtRenderer(key_order=["time", "level", "event"], bool_as_flag=False),
        ]
        target = stream or sys.stderr
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.WriteLoggerFactory(cast(TextIO, _Patient(target))),
        cache_logger_on_first_use=False,
    )
    return target


class _Patient:
    """A log that cannot be written (its disk is full, its reader gone) must not fail what it tells of."""

    def __init__(self, target: TextIO) -> None:
        self._target = target

    def write(self, text: str) -> None:
        with contextlib.suppress(OSError):
            self._target.write(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            self._target.flush()


def is_configured() -> bool:
    """Whether this process has said where its log goes; a program that uses us as a library may not have."""
    import structlog

    return bool(structlog.is_configured())


def logger(name: str, **fields: object) -> Any:
    """A logger whose events carry `component=name` and `fields`."""
    import structlog

    return structlog.get_logger(component=name, **fields)
