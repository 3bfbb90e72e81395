"""Changes and versions, and the chain of digests that ties them together."""

import hashlib
from enum import IntEnum

import msgspec

from engramfs.model.author import Author
from engramfs.model.entry import Kind

FLAGS = ("approved", "concurrent", "recovered", "secret")  # all that a version may have
PARTIAL = "(partial)"  # marks a version of which retention left only part


class ChangeKind(IntEnum):
    CREATED = 1
    MODIFIED = 2
    DELETED = 3
    RENAMED = 4

    @property
    def label(self) -> str:
        return self.name.lower()


class Change(msgspec.Struct, frozen=True, array_like=True):
    """One path created, modified, deleted or renamed by a version. A renamed directory is one change."""

    op: ChangeKind
    path: bytes  # as it was in that version; for a deletion, the path that went
    kind: Kind
    mode: int
    size: int
    digest: bytes  # raw SHA-256 of a file's content after the change; of a deletion, before it
    origin: int  # the file's lasting identity
    from_path: bytes | None = None  # of a rename
    from_digest: bytes = b""  # content before, when it was another

    @property
    def is_redacted(self) -> bool:
        """Whether path and content were taken out of it. The root has no path either, as a directory."""
        return self.path == b"" and self.kind is not Kind.DIRECTORY

    def redacted(self) -> "Change":
        """What stays: that something was created, modified, renamed or deleted."""
        from_path = None if self.from_path is None else b""
        return msgspec.structs.replace(self, path=b"", digest=b"", from_path=from_path, from_digest=b"")


class Version(msgspec.Struct, frozen=True, array_like=True):
    """The header of one immutable point of a store."""

    number: int  # 1, 2, 3 …
    parent_digest: bytes  # chained digest of the version before; empty for the first
    time: int  # nanoseconds since 1970
    author: Author
    via: str  # fs, cli, import, restore, seed
    message: str
    change_count: int
    flags: tuple[str, ...]  # of `FLAGS`
    overwrites: tuple[int, ...]  # with `concurrent`: the versions whose content it overwrote
    changes_digest: bytes
    digest: bytes = b""  # chained: see `chain`


def chain(version: Version) -> bytes:
    """SHA-256 over the parent's digest, the header and the digest of the changes."""
    header = msgspec.structs.replace(version, digest=b"")
    return hashlib.sha256(version.parent_digest + msgspec.msgpack.encode(header)).digest()


def digest_of_changes(packed: list[bytes]) -> bytes:
    """SHA-256 over the packed parts of a version's changes, in order."""
    digest = hashlib.sha256()
    for part in packed:
        digest.update(len(part).to_bytes(4, "big"))
        digest.update(part)
    return digest.digest()
