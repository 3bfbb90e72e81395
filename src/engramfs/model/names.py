"""Names of stores, and the ids of actors, tenants and agents.

A store's name is a relative path of at most `MAX_NAME` bytes: `contexts/handbook`,
`memory/digest/state`. It becomes a path below a mount, so nothing that a path walk would interpret is
let through. Checks raise `InvalidName` before anything is created.
"""

import re

from engramfs.errors import InvalidName

MAX_PART = 255  # bytes; what a directory entry can hold
MAX_PATH = 3800  # bytes of a path in a store: with a mount point before it, still below PATH_MAX
MAX_NAME = 480  # bytes; an LMDB key ends at 511

_ID = re.compile(r"[A-Za-z0-9._\-@+:]{1,128}")
_KINDS = {
    "contexts": "context",
    "memory": "memory",
    "memories": "memories",
    "org-memory": "org",
    "agents": "agent",
}


def check_store_name(name: str) -> str:
    """Return `name` if it may name a store, else raise `InvalidName` saying what is wrong with it."""
    shown = name.encode("unicode_escape", "backslashreplace").decode("ascii")[:80]

    def refuse(why: str) -> InvalidName:
        return InvalidName(
            f"store name {shown!r} {why}; use parts like contexts/handbook, each 1 to {MAX_PART} bytes"
        )

    if not name:
        raise refuse("is empty")
    if name.startswith("/"):
        raise refuse("is an absolute path")
    if any(ord(character) < 32 or ord(character) == 127 for character in name):
        raise refuse("holds a control character")
    if not name.startswith("memories/") and ("@" in name or ":" in name):
        raise refuse("holds '@' or ':', which only an actor's id may")
    try:
        encoded = name.encode()
    except UnicodeEncodeError:
        raise refuse("is not valid UTF-8") from None
    for part in encoded.split(b"/"):
        if not part:
            raise refuse("has an empty part")
        if part in (b".", b".."):
            raise refuse(f"holds the part {part.decode()!r}")
        if len(part) > MAX_PART:
            raise refuse(f"has a part of {len(part)} bytes")
    if len(encoded) > MAX_NAME:
        raise refuse(f"is {len(encoded)} bytes long, over {MAX_NAME}")
    return name


def check_id(value: str, what: str) -> str:
    """Return `value` if it may be an actor, tenant or agent id (`what` says which), else `InvalidName`."""
    if not _ID.fullmatch(value) or value in (".", ".."):
        shown = value.encode("unicode_escape", "backslashreplace").decode("ascii")[:80]
        raise InvalidName(
            f"{what} id {shown!r} is not allowed; use 1 to 128 of A-Z a-z 0-9 . _ - @ + : and not '.' or '..'"
        )
    return value


def kind_of(name: str) -> str:
    """The kind of a store, read off its name: context, memory, memories, org, agent or other."""
    return _KINDS.get(name.split("/", 1)[0], "other")


def printable(raw: bytes) -> str:
    """A file name or path as text; bytes that are not UTF-8 become lone surrogates and come back by `raw`."""
    return raw.decode("utf-8", "surrogateescape")


def raw(text: str) -> bytes:
    """The bytes of a path that `printable` or the command line gave."""
    return text.encode("utf-8", "surrogateescape")
