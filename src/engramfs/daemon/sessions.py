"""Sessions: which views one sandbox run sees, where they are in the hub, and their files.

    <run>/sessions/<id>.json     what a person can `cat`, and what comes back after a restart
    <hub>/sessions/<id>/layout/  the read-only parents, with an empty directory for each mount point
    <hub>/sessions/<id>/views/   its read_write and ask attachments; after a switch also views-2, views-3 …
    <hub>/stores/<name>/         read-only live views, shared
    <hub>/pending/<name>/<n>/    what waits for a store, for people
    <hub>/pins/<store>@<n>/      pinned views, shared

Concurrency. On the event loop; methods that are coroutines wait for the log writer to make stores.
"""

import os
import secrets
import time
from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from engramfs import telemetry
from engramfs.daemon.attachments import Attachment
from engramfs.daemon.config import AgentConfig, Config
from engramfs.daemon.first_use import make_ready
from engramfs.daemon.session import PARENTS, Attached, Holder, Parent, Session, SessionFiles
from engramfs.daemon.wanted import wanted_attachments
from engramfs.errors import EngramError, NotFound
from engramfs.history import catalog, forks
from engramfs.model.access import Access
from engramfs.model.entry import NODE_MASK, ROOT_NODE
from engramfs.model.times import format_time
from engramfs.mount.place import Place
from engramfs.storage.protocol import Writer
from engramfs.vfs.attributes import LONG
from engramfs.vfs.filesystem import Filesystem
from engramfs.vfs.synthetic import SyntheticView
from engramfs.vfs.view import View

replace = msgspec.structs.replace


class Sessions:
    """The open sessions of a worker; `directory` is None when they leave no files."""

    def __init__(self, filesystem: Filesystem, config: Config, directory: str | None) -> None:
        self._filesystem = filesystem
        self._config = config
        self._files = SessionFiles(directory)
        self._open: dict[str, Session] = {}
        self._layouts: dict[str, SyntheticView] = {}
        self._views: dict[str, dict[str, View]] = {}  # of each session, its own alone, by source
        self._log = telemetry.logger("sessions")

    def every(self) -> list[Session]:
        return sorted(self._open.values(), key=lambda session: session.opened)

    def get(self, identifier: str) -> Session:
        """Raises `NotFound`."""
        session = self._open.get(identifier)
        if session is None:
            raise NotFound(f"there is no session {identifier}; engramfs session list shows the open ones")
        return session

    def find(self, agent: str, actor: str | None, tenant: str | None, place: Place) -> Session | None:
        """The session that is attached at that place for the same identity already."""
        for session in self._open.values():
            if (session.agent, session.actor, session.tenant) == (agent, actor, tenant) and any(
                place.is_same(known) for known in session.places
            ):
                return session
        return None

    def showing(self, store: str) -> list[Session]:
        """The sessions that have `store` attached, or are being switched to it."""
        return [session for session in self.every() if store in session.stores]

    def pinned(self, store: str) -> set[int]:
        """The versions of `store` that a session is pinned to, or is being switched to."""
        shown = [each for session in self.every() for each in session.attachments]
        shown += [
            session.pending.attached
            for session in self.every()
            if session.pending is not None and session.pending.attached is not None
        ]
        return {
            each.version
            for each in shown
            if each.store == store and not each.live and each.access is Access.READ_ONLY
        }

    # Opening

    async def open(
        self,
        agent: str | None,
        actor: str | None,
        tenant: str | None,
        *,
        asked: Sequence[str] = (),
        uid: int | None = None,
        gid: int | None = None,
        place: Place | None = None,
        holder: Holder | None = None,
    ) -> Session:
        """A new session. `asked` are attachments as `attach_option` reads them, `place` is where it will be.

        Raises what scoping, the configuration, `attach_option` and `first_use` raise; then there is none.
        """
        config = self._config.agent(agent)
        wanted = await self.wanted(config, actor, tenant, asked)
        session = Session(
            id=secrets.token_hex(4),
            agent=config.name,
            actor=actor,
            tenant=tenant,
            opened=format_time(time.time_ns()),
            uid=os.geteuid() if uid is None else uid,
            gid=os.getegid() if gid is None else gid,
            parents=(),
            attachments=(),
            places=(place,) if place is not None else (),
            unattended=config.unattended,
            record_learnings=config.record_learnings,
            instructions=config.instructions,
            holder=holder,
        )
        try:
            session = self._serve(session, await self._forked(session, wanted))
        except BaseException:
            self._end_views(session.id)
            raise
        self._log.info("session opened", id=session.id, agent=session.agent, actor=actor, tenant=tenant)
        return self.keep(session)

    async def refresh(self, session: Session) -> Session:
        """The session with what has become attachable since: new contexts, say. Pins stay."""
        config = self._config.agent(session.agent)
        wanted = await self.wanted(config, session.actor, session.tenant)
        known = {each.path for each in session.attachments}
        new = [each for each in wanted if each.path not in known]
        if not new:
            return session
        attached = await self._forked(session, new)
        session = self.get(session.id)
        known = {each.path for each in session.attachments}  # another may have refreshed it meanwhile
        return self.keep(self._add(session, [each for each in attached if each.path not in known]))

    async def wanted(
        self, config: AgentConfig, actor: str | None, tenant: str | None, asked: Sequence[str] = ()
    ) -> list[Attachment]:
        """What a session shows, with the stores for it made, claimed and seeded. Raises as `open` does."""
        with self._filesystem.resources.engine.reading() as reader:
            wanted = wanted_attachments(reader, config, actor, tenant, asked)
        limits = self._config.store_limits()
        for name in await make_ready(self._filesystem, wanted, config.name, limits):
            graft_store(self._filesystem, name)
        return wanted

    def pin(self, session: Session, wanted: Attachment) -> Attached:
        """The attachment as of now."""
        with self._filesystem.resources.engine.reading() as reader:
            head = catalog.head(reader, catalog.named(reader, wanted.store).id).number
        version = head if wanted.version is None else wanted.version
        if wanted.access is not Access.READ_ONLY:
            views = "views" if session.serial == 1 else f"views-{session.serial}"
            source = f"sessions/{session.id}/{views}{wanted.path}"
        else:
            source = f"stores/{wanted.store}" if wanted.live else f"pins/{wanted.store}@{version}"
            source += f"/{wanted.inside}" if wanted.inside else ""
        return Attached(wanted.store, wanted.path, wanted.access, version, wanted.live, source, wanted.inside)

    async def _forked(self, session: Session, wanted: Sequence[Attachment]) -> list[Attached]:
        """The attachments as of now, with a new fork for each that has to ask."""
        attached = [self.pin(session, each) for each in wanted]
        asking = [each.store for each in attached if each.access is Access.ASK]
        if not asking:
            return attached

        def body(writer: Writer) -> list[int]:
            now = time.time_ns()
            stores = [catalog.writable(writer, name) for name in asking]
            return [forks.create(writer, store, now, forks.owner_of(session.id)).id for store in stores]

        made = iter(await self._filesystem.resources.writer.run(body))
        return [replace(each, fork=next(made)) if each.access is Access.ASK else each for each in attached]

    def _serve(self, session: Session, attached: Sequence[Attached]) -> Session:
        """Make the views of a new session and put them into the hub."""
        layout = self._filesystem.synthetic_view(session.id, session.uid, session.gid)
        self._layouts[session.id] = layout
        self._views[session.id] = {}
        self._filesystem.hub.graft(f"sessions/{session.id}/layout", lambda: layout)
        for path in PARENTS:
            layout.add_directory(path)
        parents = tuple(Parent(f"sessions/{session.id}/layout{path}", path) for path in PARENTS)
        return self._add(replace(session, parents=parents), attached)

    def _add(self, session: Session, attached: Sequence[Attached]) -> Session:
        """More attachments for a session; what it has stays as it is."""
        for each in attached:
            if each.path.startswith(tuple(f"{parent}/" for parent in PARENTS)):
                self._layouts[session.id].add_directory(each.path)
            self.graft(session, each)
        return session.with_attachments((*session.attachments, *attached))

    def graft(self, session: Session, attached: Attached) -> None:
        """Let the source of an attachment lead to its view. Raises `Archived`."""
        filesystem = self._filesystem
        if attached.access is not Access.READ_ONLY:
            who = session.author, session.uid, session.gid, attached.source
            view: View
            if attached.access is Access.ASK:
                view = filesystem.ask_view(attached.fork, *who)
            else:
                view = filesystem.writable_view(attached.store, *who)
            self._views[session.id][attached.source] = view
            filesystem.hub.graft(attached.source, lambda: view)
        elif not attached.live:
            filesystem.hub.graft(
                attached.source.removesuffix(f"/{attached.inside}" if attached.inside else ""),
                lambda: filesystem.pinned_view(attached.store, attached.version),
            )

    # Where it is attached

    def at(self, place: Place, but: str | None = None) -> list[Session]:
        """The sessions in the directory that `place` names, whatever process they were attached for."""
        return [
            session
            for session in self.every()
            if session.id != but and any(_is_one_directory(place, known) for known in session.places)
        ]

    def reserve(self, identifier: str, place: Place) -> Session:
        """The session is attached at `place`, or about to be, and its file says so."""
        session = self.get(identifier)
        if any(place.is_same(known) for known in session.places):
            return session
        return self.keep(replace(session, places=(*session.places, place)))

    def attached(self, identifier: str, place: Place) -> list[Session]:
        """The session alone is attached at `place`. Returns those that were there before."""
        self.reserve(identifier, place)
        return [self._leave(other, place, _is_one_directory) for other in self.at(place, but=identifier)]

    def detached(self, identifier: str, place: Place) -> Session:
        """The session is no longer attached at `place`."""
        return self._leave(self.get(identifier), place, Place.is_same)

    def _leave(self, session: Session, place: Place, is_left: Callable[[Place, Place], bool]) -> Session:
        places = tuple(known for known in session.places if not is_left(place, known))
        return self.keep(replace(session, places=places))

    # Keeping

    def keep(self, session: Session) -> Session:
        """Take the place of the session with that id, in memory and on disk."""
        self._files.keep(session)
        self._open[session.id] = session
        return session

    def close(self, identifier: str) -> None:
        """End a session: its own views answer ESTALE from now on. Raises `NotFound`."""
        self.get(identifier)
        self._end_views(identifier)
        del self._open[identifier]
        self._files.drop(identifier)
        self._log.info("session closed", id=identifier)

    def _end_views(self, identifier: str) -> None:
        for view in self._views.pop(identifier, {}).values():
            self._filesystem.revoke(view)
        layout = self._layouts.pop(identifier, None)
        if layout is not None:
            self._filesystem.revoke(layout)
            self._filesystem.hub.remove(f"sessions/{identifier}")

    def view(self, identifier: str, source: str) -> View | None:
        """The view of the session's own with that source."""
        return self._views[identifier].get(source)

    def own_sources(self, identifier: str) -> list[str]:
        return list(self._views[identifier])

    def revoke(self, identifier: str, source: str) -> None:
        """End one view of a session's own: descriptors that are open in it answer ESTALE."""
        view = self._views[identifier].pop(source, None)
        if view is not None:
            self._filesystem.revoke(view)
            self._filesystem.hub.remove(source)

    def bring_back(self) -> list[str]:
        """Serve again the sessions whose files an earlier worker left; a line for each that cannot be."""
        failures = []
        for name in self._files.names():
            try:
                session = self._files.read(name)
                served = self._serve(replace(session, attachments=()), session.attachments)
                if session.pending is not None and session.pending.attached is not None:
                    coming = replace(session, actor=session.pending.actor, tenant=session.pending.tenant)
                    self.graft(coming, session.pending.attached)
                self._open[session.id] = served
            except EngramError as error:
                failures.append(f"session file {name}: {error.message}")
        return failures

    def show_alone(self, session: Session) -> None:
        """Make the session's tree the root of the mount, each view grafted at its path: no bind mounts."""
        filesystem = self._filesystem
        filesystem.hub = root = SyntheticView(0, session.uid, session.gid, timeout=LONG)
        filesystem.views[0] = root
        for path in PARENTS:
            root.add_directory(path)
        for each in session.attachments:
            own = self._views[session.id].get(each.source)
            if own is not None:
                root.graft(each.path, partial(_same, own))
            elif each.live:
                root.graft(each.path, partial(filesystem.live_view, each.store, session.uid, session.gid))
            else:
                view = partial(filesystem.pinned_view, each.store, each.version, session.uid, session.gid)
                root.graft(each.path, view, _node_inside(view(), each.inside))


def _is_one_directory(place: Place, other: Place) -> bool:
    return (place.root, place.namespace) == (other.root, other.namespace)


def _node_inside(view: View, path: str) -> int:
    """The node at a path of one part, or the root."""
    return view.lookup(ROOT_NODE, path.encode()).inode & NODE_MASK if path else ROOT_NODE


def _same(view: View) -> View:
    return view


def graft_store(filesystem: Filesystem, name: str) -> None:
    """Show a store in the hub, and what waits for it; the views are made when somebody enters them."""
    filesystem.hub.graft(f"stores/{name}", lambda: filesystem.live_view(name))
    filesystem.hub.graft(f"pending/{name}", lambda: filesystem.waiting_view(name))


def remove_store(filesystem: Filesystem, name: str) -> None:
    """Take a store that was deleted out of the hub."""
    filesystem.hub.remove(f"stores/{name}")
    filesystem.hub.remove(f"pending/{name}")
