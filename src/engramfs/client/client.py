"""The client: stores and what is in them, their versions, sessions."""

import contextlib
import os
import secrets
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from engramfs.client.answers import File, FileContent, SearchAnswer, SessionInfo, StoreInfo
from engramfs.client.session import Session
from engramfs.client.versions import Versions
from engramfs.errors import Conflict, NotFound
from engramfs.model.entry import Kind
from engramfs.model.names import printable, raw
from engramfs.model.times import format_time

if TYPE_CHECKING:
    from engramfs.daemon.attachments import Attachment as Wanted
    from engramfs.history.repository import Repository
    from engramfs.history.tree import Tree
    from engramfs.search import Query
    from engramfs.search.following import Progress
    from engramfs.storage.protocol import Reader


class Client(Versions):
    """All of it, at the places that `Connection` is given."""

    # Reading

    def stores(self, prefix: str = "") -> list[StoreInfo]:
        """Those whose name begins with `prefix`, by name; none before anything was stored."""
        from engramfs.daemon import stores

        try:
            with self.reading() as reader:
                return [msgspec.convert(each, StoreInfo) for each in stores.every(reader, prefix)]
        except NotFound:
            return []

    def store(self, name: str) -> StoreInfo:
        """Raises `NotFound`."""
        from engramfs.daemon import stores

        with self.reading() as reader:
            return msgspec.convert(stores.read(reader, name), StoreInfo)

    def files(self, store: str, version: int | None = None, under: str = "", *, fork: int = 0) -> list[File]:
        """Every file of a store, at its head or at a version, at or below the path `under`, by path.

        Raises `NotFound` for a store or version.
        """
        from engramfs.history.tree import walk

        with self.tree(store, version, fork=fork) as (_, _, tree):
            return [
                File(printable(path), entry.size, entry.digest.hex(), entry.mtime)
                for path, entry in walk(tree, raw(under))
                if entry.kind is Kind.FILE
            ]

    def read(self, store: str, path: str, version: int | None = None, *, fork: int = 0) -> FileContent:
        """A file's content. Raises `NotFound`, and `Conflict` for a directory or a link."""
        from engramfs.history.tree import resolve
        from engramfs.storage import blobs

        with self.tree(store, version, fork=fork, path=path) as (reader, number, tree):
            entry = resolve(tree, raw(path))
            if entry is None:
                raise NotFound(f"{path} is not in {store}@{number}")
            if entry.kind is not Kind.FILE:
                raise Conflict(f"{path} in {store} is a {entry.kind.name.lower()} and not a file")
            content = blobs.read(reader, entry.digest, entry.size)
            return FileContent(store, path, number, entry.digest.hex(), content)

    @contextlib.contextmanager
    def tree(
        self, store: str, version: int | None = None, *, fork: int = 0, sealed: bool = True, path: str = ""
    ) -> "Iterator[tuple[Reader, int, Tree]]":
        """A store's tree at its head or at a version, with the transaction and the version's number.

        With `fork`, the head and what waits for approval in that fork of it. A caller who wants one `path`
        alone gets it from a version that is kept in part, too.
        """
        from engramfs.history import catalog
        from engramfs.history.kept import path_tree_at

        with self.reading(sealed=sealed) as reader:
            known = catalog.named(reader, store)
            number = catalog.head(reader, known.id).number if version is None else version
            shown = catalog.get(reader, fork) if fork else known
            yield reader, number, path_tree_at(reader, shown, version, raw(path))

    def search(
        self, query: "Query", stores: Sequence[str] = (), progress: "Progress | None" = None
    ) -> SearchAnswer:
        """What is found in the heads of `stores`, or of all; `progress` as `Searching.find` has it.

        Raises `NotFound` for a store, and `Unavailable` without the extra `[search]`.
        """
        from engramfs.history import catalog
        from engramfs.search import Place

        with self.reading() as reader:
            for name in stores:
                catalog.named(reader, name)
        reach = tuple(Place(name) for name in stores) or None
        return self.searching.find(msgspec.structs.replace(query, reach=reach), progress)

    # Sessions

    def open_session(
        self,
        agent: str | None = None,
        actor: str | None = None,
        tenant: str | None = None,
        attach: Sequence[str] = (),
        *,
        held: bool = False,
    ) -> Session:
        """A session of the program's own: at the daemon when one runs, and else its stores are made ready.

        With `held` the daemon closes it when this process ends, however that comes, unless it is attached.

        Raises what scoping, the configuration and `engramfs.daemon.attach_option` raise.
        """
        with self.lock:
            at_daemon = self.is_running()
            if at_daemon:
                info = self.opened_info(agent, actor, tenant, attach, held=held)
            else:
                info = self._opened_alone(agent, actor, tenant, attach)
            return Session(self, info, own=True, at_daemon=at_daemon, held=held)

    def session(self, identifier: str) -> Session:
        """One that is open at the daemon, or that the last daemon had. Raises `NotFound`."""
        with self.lock:
            at_daemon = self.is_running()
            info = self.session_info(identifier) if at_daemon else self._left_behind(identifier)
            return Session(self, info, own=False, at_daemon=True)

    def opened_info(
        self,
        agent: str | None,
        actor: str | None,
        tenant: str | None,
        attach: Sequence[str] = (),
        *,
        held: bool = False,
    ) -> SessionInfo:
        document = self.state.control.call(
            "session.open", agent=agent, actor=actor, tenant=tenant, attach=list(attach), held=held
        )
        return msgspec.convert(document, SessionInfo)

    def session_info(self, identifier: str) -> SessionInfo:
        """Raises `NotFound` and `NoDaemon`."""
        return msgspec.convert(
            self.state.control.call("session.show", id=identifier, state=False), SessionInfo
        )

    def close_session(self, identifier: str) -> None:
        """Raises `NotFound` and `NoDaemon`."""
        self.state.control.call("session.close", id=identifier)

    def _left_behind(self, identifier: str) -> SessionInfo:
        from engramfs.daemon.session import SessionFiles

        directory = os.path.join(self.state.locations.run, "sessions")
        try:
            left = SessionFiles(directory).read(f"{identifier}.json")
        except NotFound:
            raise NotFound(
                f"there is no session {identifier}; engramfs session list shows those that are open"
            ) from None
        return msgspec.convert(left.document(), SessionInfo)

    def _opened_alone(
        self, agent: str | None, actor: str | None, tenant: str | None, attach: Sequence[str] = ()
    ) -> SessionInfo:
        from engramfs.daemon.claiming import claim, unused
        from engramfs.daemon.wanted import wanted_attachments

        configuration = self.state.configuration()
        config = configuration.agent(agent)
        now = time.time_ns()
        with self.state.writing("engramfs session") as repository:
            with repository.engine.reading() as reader:
                wanted = wanted_attachments(reader, config, actor, tenant, attach)
                needed = unused(reader, wanted)
            limits = configuration.store_limits()
            if needed:
                repository.transact(lambda writer: claim(writer, needed, config.name, limits, now))
            attachments = [_attachment(repository, each) for each in wanted]
        document = {
            "id": secrets.token_hex(4),
            "agent": config.name,
            "actor": actor,
            "tenant": tenant,
            "opened": format_time(now),
            "attachments": attachments,
            "unattended": config.unattended,
            "record_learnings": config.record_learnings,
            "instructions": config.instructions,
        }
        return msgspec.convert(document, SessionInfo)


def _attachment(repository: "Repository", wanted: "Wanted") -> dict[str, Any]:
    """As a session of the daemon has it: a pin is the version, or the head of now."""
    from engramfs.history import catalog

    with repository.engine.reading() as reader:
        head = catalog.head(reader, catalog.named(reader, wanted.store).id).number
    version = head if wanted.version is None else wanted.version
    return msgspec.structs.asdict(wanted) | {"version": version}
