"""The method of the control socket by which tools write: one call of a session is one version."""

import time
from collections.abc import Mapping

from engramfs.daemon.committing import Committer, Room
from engramfs.daemon.control import Handler, Peer
from engramfs.daemon.editing import Applied, EditRequest, Written, apply, writable_attachment
from engramfs.daemon.request import taking
from engramfs.daemon.sessions import Sessions
from engramfs.errors import Refused
from engramfs.history import edit
from engramfs.model.access import Access
from engramfs.storage.protocol import Writer


class EditMethods:
    def __init__(self, committer: Committer, sessions: Sessions) -> None:
        self._committer = committer
        self._sessions = sessions

    def methods(self) -> Mapping[str, Handler]:
        return {"edit": taking(EditRequest, self.edit)}

    async def edit(self, request: EditRequest, _peer: Peer) -> Written:
        session = self._sessions.get(request.session)
        attached = writable_attachment(session.id, session.attachments, request.store)
        if attached.access is Access.ASK and session.unattended:
            raise Refused(
                f"what session {session.id} writes to {request.store} needs approval, and the session is "
                "unattended; nothing was written"
            )
        store = self._committer.writable(request.store)

        def body(writer: Writer, room: Room) -> Applied:
            return apply(
                writer,
                request,
                session.author,
                time.time_ns(),
                first_node=room.first_node,
                held=room.held,
                transient=self._committer.transient,
                fork=attached.fork,
            )

        nodes = edit.nodes_needed(request.edits)
        applied = await self._committer.held_still(store, nodes, body, fork=attached.fork)
        return applied.written
