"""A version as a commit's author and message, and what the message of such a commit says of its version.

    created notes.md, modified a/b

    Engramfs-Store: memory/digest/state
    Engramfs-Version: 12
    Engramfs-Digest: 5c2f…
    Engramfs-Via: fs
    Engramfs-Session: 9f3ab001

The last paragraph is ours, whatever an agent wrote above it, so it is the one that is read back.
"""

import re
from collections.abc import Iterable, Sequence

import msgspec

from engramfs.history.log import one_line
from engramfs.model.author import Author
from engramfs.model.names import printable
from engramfs.model.redaction import Redaction
from engramfs.model.store import Store
from engramfs.model.times import format_time
from engramfs.model.version import Change, Version

_NAMED = 3  # changes in a subject
_SUBJECT = 120  # characters
_NOT_IN_IDENTITY = re.compile(r"[<>\x00-\x1f\x7f]")
_TRAILER = re.compile(r"Engramfs-([A-Za-z-]+): (.*)")


class Exported(msgspec.Struct, frozen=True):
    """What the message of a commit says of the version that it came from.

    `redactions` counts those that the commit and everything before it take account of.
    """

    store: str
    number: int
    digest: str
    redactions: int


def identity(author: Author) -> bytes:
    """`digest for alice <digest+alice@engramfs>`; a tenant's actors are at `<tenant>.engramfs`."""
    who = [part for part in (author.agent, author.actor) if part] or [author.label()]
    host = f"{author.tenant}.engramfs" if author.tenant else "engramfs"
    name = _NOT_IN_IDENTITY.sub("?", author.label())
    mail = _NOT_IN_IDENTITY.sub("?", f"{'+'.join(who)}@{host}".replace(" ", "."))
    return _bytes(f"{name} <{mail}>")


def compose(
    store: Store,
    version: Version,
    changes: Sequence[Change],
    *,
    missing: tuple[int, int] | None = None,
    redacted: Sequence[Redaction] = (),
    redactions: int = 0,
) -> bytes:
    """The whole message. `missing` are the first and last of the versions before it that are not kept."""
    text = version.message.replace("\0", " ").strip() or _subject(changes, version.change_count)
    trailers = [
        ("Store", store.name),
        ("Version", str(version.number)),
        ("Digest", version.digest.hex()),
        ("Via", version.via),
        ("Session", version.author.session or ""),
        ("Flags", ", ".join(version.flags)),
        ("Overwrites", ", ".join(map(str, version.overwrites))),
        ("Missing", f"versions {missing[0]} to {missing[1]}, which retention removed" if missing else ""),
        *(("Redacted", _redacted(each)) for each in redacted if each.changes),
        ("Redactions", str(redactions or "")),
    ]
    lines = [f"Engramfs-{name}: {one_line(value)}" for name, value in trailers if value]
    return _bytes("\n".join([text, "", *lines, ""]))


def _subject(changes: Iterable[Change], count: int) -> str:
    """What changed, as one line; what was redacted has no path any more."""
    named = [f"{change.op.label} {_path(change)}" for change, _ in zip(changes, range(_NAMED), strict=False)]
    more = f" and {count - len(named)} more" if count > len(named) else ""
    subject = one_line(", ".join(named))
    return (subject if len(subject) <= _SUBJECT else subject[: _SUBJECT - 1] + "…") + more


def _path(change: Change) -> str:
    return "(redacted)" if change.is_redacted else printable(change.path) or "the root"


def _redacted(redaction: Redaction) -> str:
    count = f"{redaction.changes} change{'' if redaction.changes == 1 else 's'}"
    return f"{count} at {format_time(redaction.time)} by {redaction.author.label()}: {redaction.reason}"


def parse(message: bytes) -> Exported | None:
    """What the last paragraph says, or None when the commit did not come from a store."""
    last = message.decode("utf-8", "replace").rstrip().split("\n\n")[-1]
    found = {match[1]: match[2] for line in last.splitlines() if (match := _TRAILER.fullmatch(line))}
    try:
        number, redactions = int(found["Version"]), int(found.get("Redactions", "0"))
        return Exported(found["Store"], number, found["Digest"], redactions)
    except (KeyError, ValueError):
        return None


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")
