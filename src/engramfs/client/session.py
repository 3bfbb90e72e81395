"""What one session sees and writes, for a program that acts in its name.

The session is one that the daemon has open, or one of the program's own. An own one outlives the daemon: when
none runs, what it writes is written under the store lock, and when one runs again, it is opened there.
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from engramfs.client.answers import Attachment, SearchAnswer, SessionInfo
from engramfs.daemon.client import ControlClient
from engramfs.daemon.editing import EditRequest, Written, apply, writable_attachment
from engramfs.errors import Busy, NoDaemon, NotFound, Refused
from engramfs.model.access import Access
from engramfs.model.author import Author
from engramfs.model.file_edit import EditLimits, FileEdit
from engramfs.model.transient import TransientNames

if TYPE_CHECKING:
    from engramfs.client.client import Client
    from engramfs.history.repository import Repository
    from engramfs.search import Query
    from engramfs.search.following import Progress

_LEAVING = 10.0  # seconds for a daemon that ends to let go of the stores


class Session:
    """Use `Client.open_session` or `Client.session`. `close` ends it only where it is the program's own."""

    def __init__(
        self, client: "Client", info: SessionInfo, *, own: bool, at_daemon: bool, held: bool = False
    ) -> None:
        self.client = client
        self.info = info
        self._own = own
        self._at_daemon = at_daemon
        self._held = held

    @property
    def id(self) -> str:
        return self.info.id

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        return self.info.attachments

    @property
    def author(self) -> Author:
        info = self.info
        return Author("agent", agent=info.agent, actor=info.actor, tenant=info.tenant, session=info.id)

    @property
    def _control(self) -> ControlClient:
        return self.client.state.control

    def refresh(self, *, reopen: bool = True) -> None:
        """Learn what the session shows now: its actor may have been switched, or it was ended.

        Raises `NotFound` when it was; with `reopen`, an own one that the daemon does not know is opened there
        anew.
        """
        with self.client.lock:
            if self._at_daemon and self._control.is_listening():
                if not reopen:
                    self.info = self.client.session_info(self.id)
                    return
                with suppress(NoDaemon):  # it ended just now, and the program goes on without one
                    self.info = self._shown()

    def _shown(self) -> SessionInfo:
        """What the daemon says of it; an own one that a daemon does not know is opened there anew."""
        try:
            return self.client.session_info(self.id)
        except NotFound:
            if not self._own:
                raise
            return self._opened_again()

    def _opened_again(self) -> SessionInfo:
        self._at_daemon = True
        info = self.info
        return self.client.opened_info(info.agent, info.actor, info.tenant, held=self._held)

    def search(
        self, query: "Query", stores: Sequence[str] = (), progress: "Progress | None" = None
    ) -> SearchAnswer:
        """What is found of what the session sees now, in `stores` of it or in all that it has.

        A file that waits for approval is found by its session, and a pinned store as it was then. Raises
        `NotFound` for a store that the session does not reach, whether there is one or not.
        """
        self.refresh()
        shown = {each.store for each in self.attachments}
        for name in stores:
            if name not in shown:
                raise NotFound(
                    f"session {self.id} does not reach a store {name}; "
                    f"engramfs session show {self.id} lists those that it does"
                )
        wanted = [each for each in self.attachments if not stores or each.store in stores]
        return self.client.searching.find_as_shown(query, wanted, progress)

    def edit(
        self,
        store: str,
        edits: Sequence[FileEdit],
        message: str = "",
        limits: EditLimits | None = None,
        *,
        head: int | None = None,
    ) -> Written:
        """Do all `edits` to `store` as one version, or none of them; with `head`, only after that version.

        Raises `NotFound` and `ReadOnly` when the session may not write there, `Stale` when the head is
        another, and what `engramfs.history.edit.plan` raises.
        """
        request = EditRequest(self.id, store, tuple(edits), message, limits or EditLimits(), head)
        with self.client.lock:
            patience = None
            if self._control.is_listening():
                with suppress(NoDaemon):  # it ended before it took the call
                    return self._by_daemon(request)
                patience = _LEAVING
            try:
                with self.client.state.writing(f"session {self.id}", patience) as repository:
                    return self._alone(repository, request)
            except Busy:
                if not self._control.is_listening():
                    raise
                return self._by_daemon(request)  # which was started meanwhile

    def _by_daemon(self, request: EditRequest) -> Written:
        if not self._at_daemon:
            self.info = self._opened_again()
        try:
            return self._call(request)
        except NotFound:
            before = self.id
            self.info = self._shown()
            if self.id == before:
                raise
            return self._call(request)

    def _call(self, request: EditRequest) -> Written:
        call = msgspec.structs.asdict(msgspec.structs.replace(request, session=self.id))
        return msgspec.convert(self._control.call("edit", **call), Written)

    def _alone(self, repository: "Repository", request: EditRequest) -> Written:
        attached = writable_attachment(self.id, self.attachments, request.store)
        if attached.access is Access.ASK:
            raise Refused(
                f"what session {self.id} writes to {request.store} waits for approval, which needs a daemon; "
                "start one with engramfs up"
            )
        now = time.time_ns()
        transient = TransientNames(self.client.state.configuration().batch.transient)
        return repository.transact(
            lambda writer: apply(writer, request, self.author, now, transient=transient)
        ).written

    def close(self) -> None:
        """End the session if it is the program's own, and a daemon has it."""
        with self.client.lock:
            if self._own and self._at_daemon and self._control.is_listening():
                self._at_daemon = False
                with suppress(NoDaemon):  # with it ended its sessions
                    self.client.close_session(self.id)
