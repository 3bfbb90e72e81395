"""Contents that are no text as git writes them into a patch: whole, compressed, in letters."""

import zlib
from base64 import b85encode
from collections.abc import Iterator

_LINE = 52  # bytes
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"  # the n-th begins a line of n bytes


def git_binary(old: bytes, new: bytes) -> Iterator[str]:
    """The lines that make `new` of `old`, and those that make `old` of it again."""
    yield "GIT binary patch"
    for content in (new, old):
        yield f"literal {len(content)}"
        packed = zlib.compress(content)
        for start in range(0, len(packed), _LINE):
            part = packed[start : start + _LINE]
            yield _LETTERS[len(part) - 1] + b85encode(part, pad=True).decode()
        yield ""
