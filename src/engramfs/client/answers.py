"""What the client answers, as frozen structs. Sizes are bytes; times nanoseconds since 1970, or RFC 3339."""

import msgspec

from engramfs.model.access import Access
from engramfs.search import Found


class StoreInfo(msgspec.Struct, frozen=True):
    """A store. `version` is the number of its head, `created` RFC 3339.

    From version `oldest` on everything is there. Of `keep_days` and `keep_versions`, 0 is no rule.
    """

    name: str
    kind: str
    description: str
    version: int
    oldest: int
    files: int
    used: int
    max_file_size: int
    quota: int
    conflicts: str
    keep_days: int
    keep_versions: int
    secrets: str
    created: str
    archived: bool


class File(msgspec.Struct, frozen=True):
    """A file in a store; `mtime` in nanoseconds since 1970."""

    path: str
    size: int
    sha256: str
    mtime: int


class FileContent(msgspec.Struct, frozen=True):
    """What a file holds in a version."""

    store: str
    path: str
    version: int
    sha256: str
    content: bytes


class Attachment(msgspec.Struct, frozen=True):
    """A store at a path of a session. Without `live` it is pinned to `version`."""

    store: str
    path: str
    access: Access
    version: int
    live: bool
    inside: str = ""
    fork: int = 0  # with the access `ask`: where what the session wrote waits

    @property
    def writable(self) -> bool:
        return self.access is not Access.READ_ONLY

    @property
    def shown_version(self) -> int | None:
        """The version that the session sees; None is the head."""
        return None if self.live else self.version


class SessionInfo(msgspec.Struct, frozen=True):
    """A session as it was when it was asked for; `opened` RFC 3339."""

    id: str
    agent: str
    actor: str | None
    tenant: str | None
    opened: str
    attachments: tuple[Attachment, ...]
    unattended: bool = False
    record_learnings: bool = False
    instructions: tuple[tuple[str, str], ...] = ()  # what is told of an attachment, by short name


class SearchAnswer(msgspec.Struct, frozen=True):
    """The files that were found, best first. `notices` say what was not searched, and what to do about it."""

    found: tuple[Found, ...]
    notices: tuple[str, ...] = ()
