"""The commit that an imported version was made of: what the version keeps of it, and what that gives back.

Where everything is known and kept, the commit can be written again as it was, so that it has the same id.
Dates of authors and committers were not kept apart at first: `Git-Date` was the committer's.
"""

from collections.abc import Sequence

import msgspec

from engramfs.history import imported
from engramfs.history.git import message, signature
from engramfs.history.git.fast_export import GitCommit
from engramfs.history.git.signature import Signature
from engramfs.model.version import Change, Version

_PARENT, _AUTHOR, _COMMITTER = "Git-Parent", "Git-Author", "Git-Committer"
_NONE, _MORE = "none", " and others"


class Original(msgspec.Struct, frozen=True):
    """`parent` is its only one, "" when it had none, and None when it had several or that is not known.

    `lines` are those that its message ended with, if it came from a store.
    """

    id: str
    parent: str | None
    author: Signature | None
    committer: Signature | None
    lines: Sequence[tuple[str, str]]

    def message(self, version: Version, changes: Sequence[Change]) -> bytes:
        """The whole message that it had, if the import did not have to change it."""
        return message.recompose(version, changes, self.lines)


def lines_of(commit: GitCommit) -> list[tuple[str, str]]:
    """What a version keeps of its commit."""
    return [
        (imported.COMMIT, commit.id),
        (_PARENT, f"{commit.parent or _NONE}{_MORE if commit.is_merge else ''}"),
        (_AUTHOR, commit.author.who),
        (f"{_AUTHOR}-Date", commit.author.date),
        (_COMMITTER, commit.committer.who),
        (f"{_COMMITTER}-Date", commit.committer.date),
    ]


def original_of(version: Version) -> Original | None:
    """What is known of the commit that became `version`; None when it came otherwise."""
    identifier = imported.commit_of(version)
    if identifier is None:
        return None
    said, ours = imported.source_lines(version)
    known = dict(ours)
    parent = known.get(_PARENT)
    if parent is not None:
        parent = None if parent.endswith(_MORE) else "" if parent == _NONE else parent
    return Original(identifier, parent, _signature(known, _AUTHOR), _signature(known, _COMMITTER), said)


def parent_of(version: Version) -> str | None:
    """The first parent of the commit that became `version`, if that is known."""
    found = imported.source_of(version).get(_PARENT, _NONE).removesuffix(_MORE)
    return found if found != _NONE else None


def _signature(known: dict[str, str], who: str) -> Signature | None:
    date = known.get(f"{who}-Date")
    if date is None and who == _AUTHOR and (date := known.get("Git-Date")) is not None:
        date = date.partition(".")[0] + "+00:00"
    return signature.said(known[who], date) if date is not None and who in known else None
