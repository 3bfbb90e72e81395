"""A command that writes into a store which may not be there yet."""

from typing import TYPE_CHECKING, Any

from engramfs.cli import offline
from engramfs.cli.arguments import now
from engramfs.cli.invocation import Invocation
from engramfs.errors import NotFound

if TYPE_CHECKING:
    from engramfs.history.repository import Repository


def must_exist(invocation: Invocation, name: str, *, create: bool) -> None:
    """With `create`, make the store if it is missing, and say so. Raises `NotFound` without."""
    if _exists(invocation, name):
        return
    if not create:
        raise NotFound(
            f"there is no store {name}; --create makes it, engramfs store list shows what there is"
        )
    limits = invocation.configuration().store_limits()

    def by_daemon() -> Any:
        return invocation.client.call("store.create", name=name)

    def alone(repository: "Repository") -> Any:
        from engramfs.daemon import stores

        return stores.create(repository, limits, name=name, now=now())

    offline.write(invocation, "engramfs import", by_daemon, alone)
    invocation.output.note(f"created {name}")


def _exists(invocation: Invocation, name: str) -> bool:
    from engramfs.history import catalog

    try:
        with offline.reading(invocation) as repository, repository.engine.reading() as reader:
            return catalog.find(reader, name) is not None
    except NotFound:
        return False  # there is no state yet, and so no store
