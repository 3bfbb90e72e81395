"""`user.engramfs.message` on the root of a writable view: what its author's next version is about."""

from engramfs.errors import NoAttribute
from engramfs.model.author import Author
from engramfs.model.entry import ROOT_NODE
from engramfs.model.operation import Note
from engramfs.vfs import messages
from engramfs.vfs.live_store import LiveStore
from engramfs.vfs.refused_secrets import RefusedSecrets
from engramfs.vfs.view import MARKS

MESSAGE = MARKS + b"message"


class MessageAttribute:
    """The one attribute among the marks that can be written, through the view of that number."""

    def __init__(self, store: LiveStore, view: int, author: Author, secrets: RefusedSecrets) -> None:
        self._secrets = secrets
        self._store = store
        self._view = view
        self._author = author

    def is_named(self, node: int, name: bytes) -> bool:
        return node == ROOT_NODE and name == MESSAGE

    def marks(self, node: int) -> dict[bytes, bytes]:
        """The message that waits, if `node` is the root and there is one."""
        waiting = self._store.messages.of(self._author) if node == ROOT_NODE else ""
        return {MESSAGE: waiting.encode()} if waiting else {}

    def set(self, value: bytes) -> None:
        """Raises `InvalidArgument`, `HoldsSecret`, and `Full` as every record does; empty takes it back."""
        text = messages.decode(value)
        self._secrets.check_message(text)
        self._store.record(self._view, self._author, Note(text))

    def remove(self, *, done_before: bool) -> None:
        """Raises `NoAttribute`, unless the call was `done_before`, by an earlier worker."""
        if self._store.messages.of(self._author):
            self._store.record(self._view, self._author, Note(""))
        elif not done_before:
            raise NoAttribute

    def forget(self) -> None:
        """The author's session ends: there is no next version."""
        self._store.messages.put(self._author, "")
