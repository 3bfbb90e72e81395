"""`STORE@N:PATH`: how people name a version or a file in it."""

import re
from collections.abc import Callable

import msgspec

from engramfs.errors import UsageError
from engramfs.model.names import check_store_name, raw

_PLAIN = re.compile(r"([^@:]+)(?:@(\d+))?(?::(.*))?", re.DOTALL | re.ASCII)
_VERSION = re.compile(r"(memories/.+?)@(\d+)(?::(.*))?", re.DOTALL | re.ASCII)
_PATH = re.compile(r"(memories/[^:]+)(?::(.*))?", re.DOTALL)


class Reference(msgspec.Struct, frozen=True):
    """A store, perhaps one of its versions, perhaps a path in it."""

    store: str
    version: int | None = None
    path: bytes | None = None


def parse_reference(text: str, exists: Callable[[str], bool] = lambda _name: False) -> Reference:
    """Understand `STORE`, `STORE@N`, `STORE:PATH` and `STORE@N:PATH`.

    An actor's id may itself hold `@` and `:`; `exists` says whether a name is that of a store, and a
    store of that very name wins over any other reading. Raises `UsageError` and `InvalidName`.
    """
    if exists(text):
        return Reference(text)
    if not text.startswith("memories/"):
        match = _PLAIN.fullmatch(text)
        if match is None:
            check_store_name(text.partition("@")[0])
            raise UsageError(f"{text!r} is not STORE, STORE@N or STORE@N:PATH; a version is a number")
        return _reference(match[1], match[2], match[3])
    if match := _VERSION.fullmatch(text):
        return _reference(match[1], match[2], match[3])
    if match := _PATH.fullmatch(text):
        return _reference(match[1], None, match[2])
    return _reference(text, None, None)


def _reference(store: str, version: str | None, path: str | None) -> Reference:
    return Reference(
        check_store_name(store),
        int(version) if version else None,
        raw(path).strip(b"/") if path is not None else None,
    )
