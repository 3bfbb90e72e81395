"""Sizes (`64MiB`) and durations (`50ms`) as people write them in configuration and options."""

import re

from engramfs.errors import UsageError

_SIZES = {"": 1, "B": 1, "K": 1 << 10, "KiB": 1 << 10, "M": 1 << 20, "MiB": 1 << 20, "G": 1 << 30}
_SIZES |= {"GiB": 1 << 30, "T": 1 << 40, "TiB": 1 << 40, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_DURATIONS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_QUANTITY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", re.ASCII)


def parse_size(text: str) -> int:
    """Bytes of `64MiB`, `10 GB`, `4096`. Raises `UsageError`."""
    match = _QUANTITY.fullmatch(text)
    if not match or match[2] not in _SIZES:
        raise UsageError(f"{text!r} is not a size; write it like 4096, 64MiB or 10GiB")
    return int(float(match[1]) * _SIZES[match[2]])


def parse_duration(text: str) -> float:
    """Seconds of `50ms`, `1s`, `2h`. Raises `UsageError`."""
    match = _QUANTITY.fullmatch(text)
    if not match or match[2] not in _DURATIONS:
        raise UsageError(f"{text!r} is not a duration; write it like 50ms, 1s or 2h")
    return float(match[1]) * _DURATIONS[match[2]]


def format_size(size: int) -> str:
    """`size` bytes for people: `0 B`, `1.5 KiB`, `64 MiB`."""
    value = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.1f}".removesuffix(".0") + f" {unit}"
        value /= 1024
    return f"{value:.1f}".removesuffix(".0") + " TiB"
