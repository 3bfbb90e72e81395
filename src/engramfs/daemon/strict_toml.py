"""TOML into frozen structs, strictly. Errors are one line that names the file and the key.

A key that no struct knows is refused together with the nearest one that it could have meant.
"""

import difflib
import os
import re
import tomllib
from collections.abc import Iterator
from typing import Any, TypeVar, get_args, get_origin

import msgspec

from engramfs.errors import ConfigurationError, UsageError
from engramfs.model.quantities import parse_duration, parse_size

Table = TypeVar("Table", bound=msgspec.Struct)
_PATH = re.compile(r"(.*) - at `\$\.?(.*)`", re.DOTALL)


class Size(int):
    """Bytes, written `"64MiB"` or as a plain number."""


class Seconds(float):
    """A duration, written `"50ms"`; a bare number would leave its unit open."""


def read(path: str, table: type[Table]) -> Table:
    """The file at `path` as a `table`. Raises `ConfigurationError`."""
    try:
        with open(path, "rb") as file:
            content = tomllib.load(file)
    except FileNotFoundError:
        raise ConfigurationError(f"{path} does not exist; name another file with --config") from None
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {os.strerror(error.errno or 0)}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} is not TOML: {error}") from error
    for problem in _unknown_keys(content, table, ()):
        raise ConfigurationError(f"{path}: {problem}")
    try:
        return msgspec.convert(content, table, dec_hook=_quantity)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{path}: {_placed(str(error))}") from error


def nearest(word: str, known: list[str]) -> str:
    """` (did you mean X?)`, or what there is to choose from, to end a message with."""
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    if close:
        return f"did you mean {close[0]}?"
    return f"known are {', '.join(sorted(known))}" if known else "there are none"


def _unknown_keys(value: object, kind: Any, where: tuple[str, ...]) -> Iterator[str]:
    """A sentence for each key of `value` that `kind` does not know, depth first."""
    if not isinstance(value, dict):
        return
    if get_origin(kind) is dict:
        for key, inner in value.items():
            yield from _unknown_keys(inner, get_args(kind)[1], (*where, key))
        return
    struct = next((part for part in (kind, *get_args(kind)) if _is_struct(part)), None)
    if struct is None:
        return
    fields = {field.encode_name: field.type for field in msgspec.structs.fields(struct)}
    for key, inner in value.items():
        if key in fields:
            yield from _unknown_keys(inner, fields[key], (*where, key))
        else:
            place = f" in [{'.'.join(where)}]" if where else ""
            yield f"unknown key {key!r}{place}; {nearest(key, list(fields))}"


def _is_struct(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _quantity(kind: type, value: object) -> object:
    """msgspec's hook for the types it does not know; a ValueError becomes an error with the key's path."""
    try:
        if kind is Size:
            if isinstance(value, int) and not isinstance(value, bool):
                return Size(value)
            return Size(parse_size(_text(value)))
        if kind is Seconds:
            return Seconds(parse_duration(_text(value)))
    except UsageError as error:
        raise ValueError(error.message) from None
    raise TypeError(f"no such setting type: {kind.__name__}")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise UsageError(f'{value!r} has no unit; write it like "64MiB" or "50ms"')
    return value


def _placed(message: str) -> str:
    """msgspec's `… - at `$.a.b`` as `a.b: …`."""
    match = _PATH.fullmatch(message)
    return f"{match[2]}: {match[1]}" if match and match[2] else message
