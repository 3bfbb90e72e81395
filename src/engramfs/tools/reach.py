"""What a session may read and write, by the short names under which tools speak of stores.

Nothing outside of the session's attachments is ever looked at, and a pinned attachment is read at its pin.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from engramfs.client import Attachment, Client, File, FileContent, Session
from engramfs.daemon.editing import Written
from engramfs.errors import EngramError, NotFound, ReadOnly, UsageError, Waits
from engramfs.model.file_edit import EditLimits, FileEdit
from engramfs.tools import telling

if TYPE_CHECKING:
    from engramfs.history.tree import Tree
    from engramfs.storage.protocol import Reader

USER_MEMORY = "/memories/user"  # where the memory of the session's actor is
ORG_MEMORY = "/memories/org"
_CONTEXT, _MEMORY, _MEMORIES = "/mnt/context/contexts/", "/mnt/memory/", "/memories/"


class Reach:
    """The stores of `session`. `refresh` first: a session may have been switched since the last call."""

    def __init__(self, session: Session) -> None:
        self.session = session

    @property
    def client(self) -> Client:
        return self.session.client

    @contextmanager
    def tree(self, attachment: Attachment, *, sealed: bool = True) -> "Iterator[tuple[Reader, int, Tree]]":
        """The store of an attachment as the session sees it: at its pin, or with its own pending changes."""
        version = attachment.shown_version
        with self.client.tree(attachment.store, version, fork=attachment.fork, sealed=sealed) as found:
            yield found

    def files(self, attachment: Attachment) -> list[File]:
        """Every file that it shows, by its path in the store."""
        version = attachment.shown_version
        return self.client.files(attachment.store, version, attachment.inside, fork=attachment.fork)

    def read(self, attachment: Attachment, path: str) -> FileContent:
        """A file by its path in the store. Raises as `Client.read`."""
        version = attachment.shown_version
        return self.client.read(attachment.store, path, version, fork=attachment.fork)

    def write(
        self,
        attachment: Attachment,
        edits: Sequence[FileEdit],
        message: str = "",
        limits: EditLimits | None = None,
        *,
        head: int | None = None,
    ) -> Written:
        """Raises as `Session.edit`, and `Waits` when it waits for approval now."""
        written = self.session.edit(attachment.store, edits, message, limits, head=head)
        if written.pending:
            raise Waits(
                f"the change waits for a person's approval as pending {written.pending} of {written.store}; "
                "nothing is written yet",
                pending=written.pending,
                store=written.store,
            )
        return written

    def told(self, error: EngramError) -> str:
        """What an agent hears of an error: no path of the host."""
        return telling.told(error, self.client.state.locations)

    def refresh(self, *, reopen: bool = True) -> None:
        self.session.refresh(reopen=reopen)

    def __iter__(self) -> Iterator[Attachment]:
        return iter(self.session.attachments)

    def writable(self) -> list[Attachment]:
        """The attachments to which the session may write, each store once."""
        stores = {each.store: each for each in self if each.writable and not each.inside}
        return list(stores.values())

    def at(self, path: str) -> Attachment | None:
        """The attachment at a path of the session."""
        return next((each for each in self if each.path == path), None)

    def memory(self) -> Attachment:
        """The memory of the session's actor. Raises `NotFound` where the agent has none, and `ReadOnly`."""
        found = self.at(USER_MEMORY)
        if found is None:
            raise NotFound("this session has no memory of its own; its agent's scoping is none")
        if not found.writable:
            raise ReadOnly("the memory of this session is read-only")
        return found

    def named(self, context: str) -> Attachment:
        """The attachment that a tool calls `context`: by its short name, or by its store's.

        Raises `NotFound`, and `UsageError` for a short name of two stores.
        """
        found = {each.store: each for each in self if context in (short_name(each), each.store)}
        exact = found.get(context)
        if exact is not None or len(found) == 1:
            return exact or next(iter(found.values()))
        if found:
            raise UsageError(f"{context} may be {' or '.join(sorted(found))}; give the whole name")
        known = ", ".join(sorted({short_name(each) for each in self}))
        raise NotFound(f"there is no context {context} here; there are {known}")

    def writable_named(self, context: str) -> Attachment:
        """The same, if the session may write to it. Raises `ReadOnly` too."""
        found = self.named(context)
        writable = [each for each in self.writable() if each.store == found.store]
        if not writable:
            raise ReadOnly(f"{context} is read-only here; nothing was written")
        return writable[0]


def short_name(attachment: Attachment) -> str:
    """`handbook` of `/mnt/context/contexts/handbook`, `state` of `/mnt/memory/state`, `user`, `org`."""
    for prefix in (_CONTEXT, _MEMORY, _MEMORIES):
        if attachment.path.startswith(prefix):
            return attachment.path.removeprefix(prefix)
    return attachment.path.strip("/")
