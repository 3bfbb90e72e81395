"""Sessions: which views one sandbox run sees, where they are in the hub, and their files.

    <run>/sessions/<id>.json     what a person can `cat`, and what comes back after a restart
    <hub>/sessions/<id>/layout/  the read-only parents, with an empty directory for each mount point
    <hub>/sessions/<id>/views/   its read_write attachments
    <hub>/stores/<name>/         read-only live views, shared
    <hub>/pins/<store>@<n>/      pinned views, shared

Concurrency. On the event loop; methods that are coroutines wait for the log writer to make stores.
"""

import os
import secrets
import time
from functools import partial

import msgspec

from engramfs.daemon.attachments import Attachment, attachments
from engramfs.daemon.config import Config
from engramfs.errors import NotFound
from engramfs.history import catalog
from engramfs.model.access import Access
from engramfs.model.author import Author
from engramfs.model.times import format_time
from engramfs.storage.protocol import Writer
from engramfs.vfs.attributes import LONG
from engramfs.vfs.filesystem import Filesystem
from engramfs.vfs.synthetic import SyntheticView
from engramfs.vfs.view import View

PARENTS = ("/mnt/context", "/mnt/memory", "/memories")  # never scratch, whatever is attached below


class Attached(msgspec.Struct, frozen=True):
    """An attachment of an open session. `version` is the head when it was opened, or the pin."""

    store: str
    path: str
    access: Access
    version: int
    live: bool
    source: str  # of the bind mount, relative to the hub


class Parent(msgspec.Struct, frozen=True):
    """A read-only directory of the session that holds mount points."""

    source: str
    path: str


class Mount(msgspec.Struct, frozen=True):
    """One bind mount, as the keeper attaches it again."""

    source: str
    target: str
    read_only: bool


class Session(msgspec.Struct, frozen=True):
    """One sandbox run, as its file has it. `mounts` is empty while it is attached nowhere."""

    id: str
    agent: str
    actor: str | None
    tenant: str | None
    opened: str  # RFC 3339
    uid: int
    gid: int
    parents: tuple[Parent, ...]
    attachments: tuple[Attached, ...]
    root: str | None = None
    mounts: tuple[Mount, ...] = ()

    @property
    def author(self) -> Author:
        return Author("agent", agent=self.agent, actor=self.actor, tenant=self.tenant, session=self.id)


class Sessions:
    """The open sessions of a worker; `directory` is None when they leave no files."""

    def __init__(self, filesystem: Filesystem, config: Config, directory: str | None) -> None:
        self._filesystem = filesystem
        self._config = config
        self._directory = directory
        self._open: dict[str, Session] = {}
        self._views: dict[str, list[View]] = {}  # of each session, its own alone
        self._layouts: dict[str, SyntheticView] = {}

    def every(self) -> list[Session]:
        return sorted(self._open.values(), key=lambda session: session.opened)

    def get(self, identifier: str) -> Session:
        """Raises `NotFound`."""
        session = self._open.get(identifier)
        if session is None:
            raise NotFound(f"there is no session {identifier}; engramfs status lists those that are open")
        return session

    def find(self, agent: str, actor: str | None, tenant: str | None, root: str) -> Session | None:
        """The session that is open for the same identity and root directory already."""
        for session in self._open.values():
            if (session.agent, session.actor, session.tenant, session.root) == (agent, actor, tenant, root):
                return session
        return None

    # Opening

    async def open(self, agent: str | None, actor: str | None, tenant: str | None) -> Session:
        """A new session. Raises what scoping and the configuration raise; then nothing was made."""
        wanted = await self._wanted(agent, actor, tenant)
        session = Session(
            id=secrets.token_hex(4),
            agent=self._config.agent(agent).name,
            actor=actor,
            tenant=tenant,
            opened=format_time(time.time_ns()),
            uid=os.geteuid(),
            gid=os.getegid(),
            parents=(),
            attachments=(),
        )
        session = self._serve(session, [self._pin(session.id, each) for each in wanted])
        return self._keep(session)

    async def refresh(self, session: Session) -> Session:
        """The session with what has become attachable since: new contexts, say. Pins stay."""
        wanted = await self._wanted(session.agent, session.actor, session.tenant)
        known = {each.path for each in session.attachments}
        new = [self._pin(session.id, each) for each in wanted if each.path not in known]
        return self._keep(self._add(session, new)) if new else session

    async def _wanted(self, agent: str | None, actor: str | None, tenant: str | None) -> list[Attachment]:
        config = self._config.agent(agent)
        with self._filesystem.resources.engine.reading() as reader:
            names = [store.name for store in catalog.every(reader)]
        wanted = attachments(config, config.name, actor, tenant, names)
        missing = [each.store for each in wanted if each.create and each.store not in names]
        if missing:
            await self._filesystem.resources.writer.run(partial(self._create, names=missing))
            for name in missing:
                graft_store(self._filesystem, name)
        return wanted

    def _create(self, writer: Writer, names: list[str]) -> None:
        for name in names:
            if catalog.find(writer, name) is None:
                catalog.create(writer, name, now=time.time_ns(), limits=self._config.store_limits())

    def _pin(self, session: str, wanted: Attachment) -> Attached:
        with self._filesystem.resources.engine.reading() as reader:
            head = catalog.head(reader, catalog.named(reader, wanted.store).id).number
        if wanted.access is Access.READ_WRITE:
            source = f"sessions/{session}/views{wanted.path}"
        else:
            source = f"stores/{wanted.store}" if wanted.live else f"pins/{wanted.store}@{head}"
        return Attached(wanted.store, wanted.path, wanted.access, head, wanted.live, source)

    def _serve(self, session: Session, attached: list[Attached]) -> Session:
        """Make the views of a new session and put them into the hub."""
        layout = self._filesystem.synthetic_view(session.id, session.uid, session.gid)
        self._layouts[session.id] = layout
        self._views[session.id] = [layout]
        self._filesystem.hub.graft(f"sessions/{session.id}/layout", lambda: layout)
        for path in PARENTS:
            layout.add_directory(path)
        parents = tuple(Parent(f"sessions/{session.id}/layout{path}", path) for path in PARENTS)
        return self._add(msgspec.structs.replace(session, parents=parents), attached)

    def _add(self, session: Session, attached: list[Attached]) -> Session:
        """More attachments for a session; what it has stays as it is."""
        for each in attached:
            self._layouts[session.id].add_directory(each.path)
            self._graft(session, each)
        return msgspec.structs.replace(session, attachments=(*session.attachments, *attached))

    def _graft(self, session: Session, attached: Attached) -> None:
        filesystem = self._filesystem
        if attached.access is Access.READ_WRITE:
            view = filesystem.writable_view(
                attached.store, session.author, session.uid, session.gid, attached.path
            )
            self._views[session.id].append(view)
            filesystem.hub.graft(attached.source, lambda: view)
        elif not attached.live:
            filesystem.hub.graft(
                attached.source, lambda: filesystem.pinned_view(attached.store, attached.version)
            )

    # Keeping

    def attached(self, identifier: str, root: str) -> Session:
        """The session was attached under `root`: its file says how to do it again."""
        session = self.get(identifier)
        mounts = [Mount(parent.source, parent.path, read_only=True) for parent in session.parents]
        mounts += [
            Mount(each.source, each.path, read_only=each.access is Access.READ_ONLY)
            for each in session.attachments
        ]
        return self._keep(msgspec.structs.replace(session, root=root, mounts=tuple(mounts)))

    def close(self, identifier: str) -> None:
        """End a session: its own views answer ESTALE from now on. Raises `NotFound`."""
        self.get(identifier)
        self._end_views(identifier)
        self._filesystem.hub.remove(f"sessions/{identifier}")
        del self._open[identifier]
        if self._directory is not None:
            os.unlink(os.path.join(self._directory, f"{identifier}.json"))

    def _end_views(self, identifier: str) -> None:
        del self._layouts[identifier]
        for view in self._views.pop(identifier):
            self._filesystem.end(view)

    def _keep(self, session: Session) -> Session:
        self._open[session.id] = session
        if self._directory is not None:
            path = os.path.join(self._directory, f"{session.id}.json")
            temporary = os.path.join(self._directory, f".{session.id}")
            with open(temporary, "wb", opener=partial(os.open, mode=0o600)) as file:
                file.write(msgspec.json.format(msgspec.json.encode(session)) + b"\n")
            os.replace(temporary, path)
        return session

    def bring_back(self) -> list[str]:
        """Serve again the sessions whose files an earlier worker left; a line for each that cannot be."""
        failures = []
        assert self._directory is not None
        for name in sorted(os.listdir(self._directory)):
            if not name.endswith(".json"):
                continue
            try:
                with open(os.path.join(self._directory, name), "rb") as file:
                    session = msgspec.json.decode(file.read(), type=Session)
                bare = msgspec.structs.replace(session, attachments=())
                self._open[session.id] = self._serve(bare, list(session.attachments))
            except (OSError, msgspec.MsgspecError, NotFound) as error:
                failures.append(f"session file {name}: {error}")
        return failures

    def show_alone(self, session: Session) -> None:
        """Make the session's tree the root of the mount, each view grafted at its path: no bind mounts."""
        filesystem = self._filesystem
        filesystem.hub = root = SyntheticView(0, session.uid, session.gid, timeout=LONG)
        filesystem.views[0] = root
        writable = iter([view for view in self._views[session.id] if view.access is Access.READ_WRITE])
        for path in PARENTS:
            root.add_directory(path)
        for each in session.attachments:
            if each.access is Access.READ_WRITE:
                root.graft(each.path, partial(_same, next(writable)))
            elif each.live:
                root.graft(each.path, partial(filesystem.live_view, each.store, session.uid, session.gid))
            else:
                root.graft(
                    each.path,
                    partial(filesystem.pinned_view, each.store, each.version, session.uid, session.gid),
                )


def _same(view: View) -> View:
    return view


def graft_store(filesystem: Filesystem, name: str) -> None:
    """Show a store in the hub; its view is made when somebody enters it."""
    filesystem.hub.graft(f"stores/{name}", lambda: filesystem.live_view(name))
