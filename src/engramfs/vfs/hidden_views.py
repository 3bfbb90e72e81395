"""What is below `.versions` of each view: made when somebody enters it, and gone when the kernel forgot it.

Their numbers come from `ViewNumbers`, with the number of the view above in the key, so that a worker that
took the mount over makes the same ones again.
"""

from collections.abc import Callable, Mapping

from engramfs.errors import NotFound
from engramfs.history import catalog, forks, pending
from engramfs.model.pending import Pending
from engramfs.model.store import Store
from engramfs.vfs.ask_view import AskView
from engramfs.vfs.live_store import LiveStore
from engramfs.vfs.pending_view import EphemeralPendingView, PendingView
from engramfs.vfs.pinned_view import EphemeralPinnedView, PinnedView
from engramfs.vfs.resources import Resources
from engramfs.vfs.versions_view import VersionsView, ViewStatus
from engramfs.vfs.view import View
from engramfs.vfs.view_numbers import Key, ViewNumbers
from engramfs.vfs.writable_view import WritableView


class HiddenViews:
    """`views` and `stores` are those of the filesystem; `add` makes a view one of them."""

    def __init__(
        self,
        resources: Resources,
        numbers: ViewNumbers,
        views: Mapping[int, View],
        stores: Mapping[int, LiveStore],
        add: Callable[[View], None],
    ) -> None:
        self._resources = resources
        self._numbers = numbers
        self._views = views
        self._stores = stores
        self._add = add

    def versions(self, above: View, store: Store) -> View:
        """`.versions` of a view."""

        def make(number: int) -> View:
            return VersionsView(
                number,
                above,
                self._resources,
                store,
                lambda version: self._version(number, above, store, version),
                lambda: self._pending(number, above, store),
                lambda: self._status(above, store),
            )

        return self._known(("versions", above.number), make)

    def waiting(self, store: Store) -> View:
        """All that waits for a store, for people."""

        def make(number: int) -> View:
            return PendingView(
                number, 0, 0, self._resources, store, None, lambda one: self._offered(number, 0, 0, one)
            )

        return self._known(("waiting", store.id), make)

    def revive(self, key: Key, find: Callable[[int], View]) -> View | None:
        """A view that an earlier worker showed; `find` gives one by its number. Raises `NotFound`."""
        match key:
            case ("versions", int(above)):
                view = find(above)
                return view.versions() if view.versions is not None else None
            case ("version", int(versions), int(version)):
                entered = find(versions)
                return entered.enter(version) if isinstance(entered, VersionsView) else None
            case ("pending", int(versions)):
                entered = find(versions)
                return entered.pending() if isinstance(entered, VersionsView) else None
            case ("offered", int(above), int(number)):
                entered = find(above)
                return entered.enter(number) if isinstance(entered, PendingView) else None
            case ("waiting", int(store)):
                with self._resources.engine.reading() as reader:
                    return self.waiting(catalog.get(reader, store))
            case _:
                raise NotFound("such a view is made by its session")

    def _known(self, key: Key, make: Callable[[int], View]) -> View:
        number = self._numbers.of(key)
        view = self._views.get(number)
        if view is None:
            view = make(number)
            self._add(view)
        return view

    def _version(self, versions: int, above: View, store: Store, version: int) -> View:
        def make(number: int) -> View:
            return EphemeralPinnedView(number, above.uid, above.gid, self._resources, store, version)

        return self._known(("version", versions, version), make)

    def _pending(self, versions: int, above: View, store: Store) -> View:
        session = above.author.session if isinstance(above, WritableView) else None
        uid, gid = above.uid, above.gid

        def make(number: int) -> View:
            def enter(offered: Pending) -> View:
                return self._offered(number, uid, gid, offered)

            owner = forks.owner_of(session) if session else ""
            return EphemeralPendingView(number, uid, gid, self._resources, store, owner, enter)

        return self._known(("pending", versions), make)

    def _offered(self, above: int, uid: int, gid: int, offered: Pending) -> View:
        def make(number: int) -> View:
            with self._resources.engine.reading() as reader:
                fork = catalog.get(reader, offered.fork)
            return EphemeralPinnedView(number, uid, gid, self._resources, fork, offered.version)

        return self._known(("offered", above, offered.number), make)

    def _status(self, view: View, store: Store) -> str:
        live = view.store if isinstance(view, AskView) else self._stores.get(store.id)
        author = view.author if isinstance(view, WritableView) else None
        with self._resources.engine.reading() as reader:
            head = catalog.head(reader, store.id).number
            waiting = view.waiting if isinstance(view, AskView) else pending.count_waiting(reader, store.id)
        return ViewStatus(
            store=store.name,
            access=view.access.value,
            head=head,
            shown=f"version {view.version}" if isinstance(view, PinnedView) else "live",
            session=(author.session or "") if author is not None else "shared",
            unsealed=len(live.batch.names) if live is not None and live.batch is not None else 0,
            pending=waiting,
            recent=tuple(live.recent) if live is not None else (),
            decisions=tuple(view.decisions()) if isinstance(view, AskView) else (),
        ).text()
