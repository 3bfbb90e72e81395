"""How git's streams write paths, and which paths no git repository may hold, or no store."""

import re

from engramfs.history.plain_directory import RESERVED

_PLAIN = re.compile(rb'[^\x00-\x1f"\\\x7f-\xff]+')
_ESCAPES = {ord(b"n"): b"\n", ord(b"t"): b"\t", ord(b"a"): b"\a", ord(b"b"): b"\b"}
_ESCAPES |= {ord(b"f"): b"\f", ord(b"r"): b"\r", ord(b"v"): b"\v", ord(b'"'): b'"', ord(b"\\"): b"\\"}
_ESCAPED = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
# What other systems leave out of a name before they compare it; git guards its own directory there too.
_IGNORED = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
_SUBMODULE = b"160000"
_OWN = {".git", "git~1"}


def quoted(path: bytes) -> bytes:
    """`path` as fast-import reads it: any byte but NUL may be in it."""
    if _PLAIN.fullmatch(path) and not path.startswith(b" "):
        return path
    escaped = (
        b"\\%03o" % byte if byte < 32 or byte > 126 or byte in b'"\\' else bytes([byte]) for byte in path
    )
    return b'"' + b"".join(escaped) + b'"'


def unquoted(text: bytes) -> bytes:
    """The path that fast-export wrote as `text`."""
    if not text.startswith(b'"'):
        return text
    return _ESCAPED.sub(lambda match: _unescaped(match[1]), text[1:-1])


def _unescaped(code: bytes) -> bytes:
    return bytes([int(code, 8)]) if len(code) == 3 else _ESCAPES.get(code[0], code)


def is_left_out(path: bytes, mode: bytes) -> bool:
    """Whether no store keeps it: a submodule, or what is in the place of `.versions`."""
    return mode == _SUBMODULE or path.split(b"/", 1)[0] == RESERVED


def is_refused(path: bytes) -> bool:
    """Whether git would refuse to check `path` out, because a part of it could be its own `.git`."""
    if path.isascii() and b"git" not in path.lower():
        return False
    return any(_is_own(name) for name in path.split(b"/"))


def _is_own(name: bytes) -> bool:
    shown = _IGNORED.sub("", name.decode("utf-8", "surrogateescape")).lower()
    # On other systems a colon begins a stream, a backslash a directory, and dots and blanks at the end go.
    return re.split(r"[:\\]", shown, maxsplit=1)[0].rstrip(" .") in _OWN
