"""A version as a commit's message, and what the message of such a commit says of its version.

    created notes.md, modified a/b

    Engramfs-Store: memory/digest/state
    Engramfs-Version: 12
    Engramfs-Digest: 5c2f…
    Engramfs-Via: fs
    Engramfs-Author: agent
    Engramfs-Agent: digest
    Engramfs-Actor: alice
    Engramfs-Session: 9f3ab001

The last paragraph is ours, whatever an agent wrote above it, so it is the one that is read back. What is
above it is the message of the version, byte for byte. A version without one gets a summary of its changes
for people, which the line `Engramfs-Summary` says again: unless somebody edits the commit, the two are equal,
and an import knows that nobody wrote it.
"""

import re
from collections.abc import Iterable, Sequence

import msgspec

from engramfs.history.git.authors import lines_about
from engramfs.history.imported import OURS, source_of, text_of
from engramfs.model.names import printable
from engramfs.model.redaction import Redaction
from engramfs.model.store import Store
from engramfs.model.times import format_time
from engramfs.model.version import Change, Version
from engramfs.model.visible import visible

DIGEST = f"{OURS}Digest"  # the line of it
_NAMED = 3  # changes in a summary
_SUMMARY = 120  # characters
_TRAILER = re.compile(r"(Engramfs-[A-Za-z-]+|Git-[A-Za-z-]+|Imported-By): (.*)")


class Exported(msgspec.Struct, frozen=True):
    """What the message of a commit says of the version that it came from.

    `text` is the message that the version had. `redactions` counts those that the commit and everything
    before it take account of. `lines` are all that our paragraph has but the summary, by name.
    """

    store: str
    number: int
    digest: str
    redactions: int
    text: str
    lines: list[tuple[str, str]]


def compose(
    store: Store,
    version: Version,
    changes: Sequence[Change],
    *,
    missing: tuple[int, int] | None = None,
    partial: bool = False,
    redacted: Sequence[Redaction] = (),
    redactions: int = 0,
) -> bytes:
    """The whole message. `missing` are the first and last of the versions before it that are not kept.

    `partial` is that of the version itself retention left only part.
    """
    text = text_of(version).replace("\0", " ")
    summary = "" if text.strip() else _summary(changes, version.change_count)
    trailers = [
        ("Store", store.name),
        ("Version", str(version.number)),
        ("Digest", version.digest.hex()),
        ("Via", version.via),
        *lines_about(version.author),
        ("Flags", ", ".join(version.flags)),
        ("Overwrites", ", ".join(map(str, version.overwrites))),
        ("Missing", f"versions {missing[0]} to {missing[1]}, which retention removed" if missing else ""),
        ("Partial", "retention left only part of its tree" if partial else ""),
        *(("Redacted", _redacted(each)) for each in redacted if each.changes),
        ("Redactions", str(redactions or "")),
        ("Summary", summary),
    ]
    source = [f"{name}: {value}" for name, value in source_of(version).items() if not _is_ours(name)]
    lines = [f"{OURS}{name}: {visible(value)}" for name, value in trailers if value]
    return _bytes("\n".join([summary or text, "", *source, *lines, ""]))


def recompose(version: Version, changes: Sequence[Change], lines: Sequence[tuple[str, str]]) -> bytes:
    """The message of the commit that became `version`; `lines` are those that a store had ended it with."""
    text = text_of(version)
    if not lines:
        return _bytes(f"{text}\n" if text else "")
    summary = "" if text.strip() else _summary(changes, version.change_count)
    ended = [*lines, (f"{OURS}Summary", summary)] if summary else lines
    return _bytes("\n".join([summary or text, "", *(f"{name}: {value}" for name, value in ended), ""]))


def _is_ours(name: str) -> bool:
    return name.startswith(OURS)


def _summary(changes: Iterable[Change], count: int) -> str:
    """What changed, as one line; what was redacted has no path any more."""
    named = [f"{change.op.label} {_path(change)}" for change, _ in zip(changes, range(_NAMED), strict=False)]
    more = f" and {count - len(named)} more" if count > len(named) else ""
    summary = visible(", ".join(named))
    return (summary if len(summary) <= _SUMMARY else summary[: _SUMMARY - 1] + "…") + more


def _path(change: Change) -> str:
    return "(redacted)" if change.is_redacted else printable(change.path) or "the root"


def _redacted(redaction: Redaction) -> str:
    count = f"{redaction.changes} change{'' if redaction.changes == 1 else 's'}"
    return f"{count} at {format_time(redaction.time)} by {redaction.author.label()}: {redaction.reason}"


def parse(message: bytes) -> Exported | None:
    """What a message says, or None when the commit did not come from a store."""
    whole = message.decode("utf-8", "replace").rstrip("\n")
    start = whole.rfind("\n\n")
    lines = whole[start + 2 if start >= 0 else 0 :].split("\n")
    found = [(match[1], match[2]) for line in lines if (match := _TRAILER.fullmatch(line))]
    ours = {name.removeprefix(OURS): value for name, value in found if _is_ours(name)}
    text = whole[: max(start, 0)]
    if text == ours.get("Summary"):
        text = ""
    elif len(found) < len(lines):  # somebody signed it
        text = whole
    kept = [line for line in found if line[0] != f"{OURS}Summary"]
    try:
        number, redactions = int(ours["Version"]), int(ours.get("Redactions", "0"))
        return Exported(ours["Store"], number, ours["Digest"], redactions, text, kept)
    except (KeyError, ValueError):
        return None


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")
