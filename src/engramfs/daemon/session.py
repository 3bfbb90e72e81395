"""One sandbox run, as its file `<run>/sessions/<id>.json` has it: a person can `cat` it.

Frozen values; `engramfs.daemon.sessions` changes them by replacing them.
"""

import os
import re
from typing import Any

import msgspec

from engramfs.errors import NotFound, StorageError
from engramfs.model.access import Access
from engramfs.model.author import Author
from engramfs.mount.place import Place

PARENTS = ("/mnt/context", "/mnt/memory", "/memories")  # never scratch, whatever is attached below
_ID = re.compile(r"[0-9a-f]{8}")


class Attached(msgspec.Struct, frozen=True):
    """An attachment of an open session. `version` is the head when it was opened, or the pin."""

    store: str
    path: str
    access: Access
    version: int
    live: bool
    source: str  # of the bind mount, relative to the hub
    inside: str = ""  # the part of the store that is shown; empty: all of it
    fork: int = 0  # with the access `ask`: the id of the fork that its changes are in


class Parent(msgspec.Struct, frozen=True):
    """A read-only directory of the session that holds mount points."""

    source: str
    path: str


class Mount(msgspec.Struct, frozen=True):
    """One bind mount, as the keeper attaches it again."""

    source: str
    target: str
    read_only: bool


class Switch(msgspec.Struct, frozen=True):
    """The actor that a session had until `time` (RFC 3339)."""

    time: str
    actor: str | None
    tenant: str | None


class Pending(msgspec.Struct, frozen=True):
    """A switch whose mounts are being made by process `by`; `attached` is None when none is needed."""

    actor: str | None
    tenant: str | None
    attached: Attached | None
    by: Place


class Holder(msgspec.Struct, frozen=True):
    """The process with whose end a session ends; `started` as in `engramfs.mount.place`."""

    pid: int
    started: int


class Session(msgspec.Struct, frozen=True):
    """`mounts` is what there is at every one of its `places`; `serial` counts the views that it had."""

    id: str
    agent: str
    actor: str | None
    tenant: str | None
    opened: str  # RFC 3339
    uid: int
    gid: int
    parents: tuple[Parent, ...]
    attachments: tuple[Attached, ...]
    places: tuple[Place, ...] = ()
    mounts: tuple[Mount, ...] = ()
    switched: tuple[Switch, ...] = ()
    serial: int = 1
    pending: Pending | None = None
    unattended: bool = False  # nobody is there to be asked
    record_learnings: bool = False  # it is told to record what it learned before it finishes
    instructions: tuple[tuple[str, str], ...] = ()  # what it is told of an attachment, by short name
    holder: Holder | None = None

    @property
    def author(self) -> Author:
        return Author("agent", agent=self.agent, actor=self.actor, tenant=self.tenant, session=self.id)

    @property
    def stores(self) -> set[str]:
        """The names of the stores that it shows, and of the one that a switch is about to show."""
        coming = self.pending.attached if self.pending is not None else None
        return {each.store for each in (*self.attachments, *([coming] if coming is not None else []))}

    def with_attachments(self, attachments: tuple[Attached, ...]) -> "Session":
        """The same with these attachments, and the mounts that show them, parents first."""
        mounts = [Mount(parent.source, parent.path, read_only=True) for parent in self.parents]
        mounts += [
            Mount(each.source, each.path, read_only=each.access is Access.READ_ONLY) for each in attachments
        ]
        return msgspec.structs.replace(self, attachments=attachments, mounts=tuple(mounts))

    def document(self, state: str | None = None) -> dict[str, Any]:
        """The session as JSON for commands; `state` is `open`, `attached` or `gone`, where it is known."""
        document: dict[str, Any] = msgspec.to_builtins(self)
        for key in ("mounts", "serial", "pending", "holder"):
            del document[key]
        for attachment in document["attachments"]:
            if not attachment["fork"]:
                del attachment["fork"]
        if self.pending is not None:
            document["switching"] = {"actor": self.pending.actor, "tenant": self.pending.tenant}
        return document if state is None else document | {"state": state}


class SessionFiles:
    """The files of sessions in `directory`; with None there are none."""

    def __init__(self, directory: str | None) -> None:
        self._directory = directory

    def keep(self, session: Session) -> None:
        """Write the file of a session, whole or not at all."""
        if self._directory is None:
            return
        temporary = os.path.join(self._directory, f".{session.id}")
        with open(temporary, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(msgspec.json.format(msgspec.json.encode(session)) + b"\n")
        os.replace(temporary, os.path.join(self._directory, f"{session.id}.json"))

    def drop(self, identifier: str) -> None:
        if self._directory is not None:
            os.unlink(os.path.join(self._directory, f"{identifier}.json"))

    def names(self) -> list[str]:
        """The names of all session files."""
        names = os.listdir(self._directory) if self._directory is not None else []
        return sorted(name for name in names if name.endswith(".json"))

    def read(self, name: str) -> Session:
        """The session in a file. Raises `NotFound` and `StorageError`."""
        assert self._directory is not None
        try:
            with open(os.path.join(self._directory, name), "rb") as file:
                session = msgspec.json.decode(file.read(), type=Session)
        except OSError as error:
            raise NotFound(f"session file {name}: {error.strerror}") from error
        except msgspec.MsgspecError as error:
            raise StorageError(f"session file {name}: {error}") from error
        if not _ID.fullmatch(session.id) or name != f"{session.id}.json":
            raise StorageError(f"session file {name} is of session {session.id!r}")
        return session
