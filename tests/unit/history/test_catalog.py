"""Which stores there are."""

import pytest

from engramfs.errors import AlreadyExists, Archived, Corrupt, InvalidName, NotFound, UsageError
from engramfs.history import catalog
from engramfs.history.repository import Repository
from engramfs.model.store import Head, Limits, Store
from engramfs.storage import keys
from engramfs.storage.protocol import Table

from .conftest import replace


def create(repository: Repository, name: str, limits: Limits | None = None) -> Store:
    return repository.transact(lambda writer: catalog.create(writer, name, now=5, limits=limits))


def names(repository: Repository, prefix: str = "") -> list[str]:
    with repository.engine.reading() as reader:
        return [store.name for store in catalog.every(reader, prefix)]


def test_a_new_store_is_empty_and_found_by_its_name(repository: Repository) -> None:
    store = create(repository, "contexts/größe")
    with repository.engine.reading() as reader:
        assert catalog.named(reader, "contexts/größe") == catalog.get(reader, store.id) == store
        assert catalog.head(reader, store.id) == Head()
    assert (store.kind, store.created, store.limits, store.archived) == ("context", 5, Limits(), False)


def test_stores_are_listed_by_name_below_a_prefix(repository: Repository) -> None:
    for name in ("memory/b/x", "contexts/b", "contexts/a", "memory/a/x", "org-memory"):
        create(repository, name)
    assert names(repository) == ["contexts/a", "contexts/b", "memory/a/x", "memory/b/x", "org-memory"]
    assert names(repository, "memory/") == ["memory/a/x", "memory/b/x"]
    assert names(repository, "nothing") == []


def test_a_name_that_is_taken_or_nested_is_refused(repository: Repository) -> None:
    create(repository, "memory/digest/state")
    for name, why in (
        ("memory/digest/state", "exists"),
        ("memory/digest", "would hold the store memory/digest/state"),
        ("memory/digest/state/deeper", "would lie in the store memory/digest/state"),
    ):
        with pytest.raises(AlreadyExists, match=why):
            create(repository, name)
    create(repository, "memory/digest/state2")
    assert names(repository) == ["memory/digest/state", "memory/digest/state2"]


@pytest.mark.parametrize("name", ["../x", "/x", "a\nb", "contexts/" + "x" * 256])
def test_a_name_that_is_not_allowed_creates_nothing(repository: Repository, name: str) -> None:
    with pytest.raises(InvalidName):
        create(repository, name)
    assert names(repository) == []


@pytest.mark.parametrize("limits", [Limits(max_file_size=0), Limits(quota=-1), Limits(quota=1 << 62)])
def test_limits_that_a_filesystem_cannot_show_are_refused(repository: Repository, limits: Limits) -> None:
    with pytest.raises(UsageError, match="it must be at least 1 byte and below 4 EiB"):
        create(repository, "contexts/a", limits)


def test_a_store_that_is_not_there_is_not_found(repository: Repository) -> None:
    with repository.engine.reading() as reader:
        with pytest.raises(NotFound, match="there is no store contexts/a; engramfs store list"):
            catalog.named(reader, "contexts/a")
        with pytest.raises(InvalidName):
            catalog.named(reader, "contexts/../a")
        assert catalog.find(reader, "contexts/\udcff") is None


def test_an_archived_store_takes_no_versions(repository: Repository) -> None:
    store = create(repository, "contexts/a")
    repository.transact(lambda writer: catalog.put(writer, replace(store, archived=True)))
    with repository.engine.reading() as reader:
        with pytest.raises(Archived, match="store contexts/a is archived"):
            catalog.writable(reader, "contexts/a")
        assert catalog.named(reader, "contexts/a").archived


def test_rows_that_cannot_be_read_are_corrupt(repository: Repository) -> None:
    store = create(repository, "contexts/a")
    for table in (Table.STORES, Table.HEADS):
        repository.transact(lambda writer, table=table: writer.put(table, keys.u32(store.id), b"\xc1"))  # type: ignore[misc]
    with repository.engine.reading() as reader:
        with pytest.raises(Corrupt, match="the row of store number 1 cannot be read"):
            catalog.named(reader, "contexts/a")
        with pytest.raises(Corrupt, match="the head of store number 1 cannot be read"):
            catalog.head(reader, store.id)
