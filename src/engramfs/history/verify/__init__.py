"""Whether everything that was recorded is still so: the invariants of `engramfs.storage.keys`.

It reads and never writes, beside a running worker. No read transaction stays open for long: each check
goes on in batches, and whatever must agree is read in one batch. What happens between batches (versions
are added) must not look like damage, so each check knows what may have grown.

report     findings and numbers
stores     names, stores and heads belong together; the feed has each version
chain      versions and changes: numbers without a gap, digests that prove each other
rows       `live`, `history` and `nodes`: the tree is whole and is what history says
forks      the same of what differs in a fork, and that each of its versions is pending or was
contents   each content has its digest
journal    what is not in the log yet can be replayed
"""

import contextlib
from collections.abc import Iterable

import msgspec

from engramfs.errors import Corrupt, NotFound
from engramfs.history import catalog
from engramfs.history.repository import Repository
from engramfs.history.verify.chain import check_chain
from engramfs.history.verify.contents import Contents
from engramfs.history.verify.forks import ForkRows, check_pending
from engramfs.history.verify.journal import check_journal
from engramfs.history.verify.report import Finding, Progress, Report, Reporter
from engramfs.history.verify.rows import Rows
from engramfs.history.verify.stores import check_feed, check_stores
from engramfs.model.store import Store
from engramfs.storage import keys
from engramfs.storage.protocol import Reader, Table

replace = msgspec.structs.replace
__all__ = ["Finding", "Report", "verify"]


def verify(
    repository: Repository, names: Iterable[str] | None = None, progress: Progress = lambda *_: None
) -> Report:
    """Check the stores of those names (None: everything, journal and unused contents included).

    `progress` gets the name of the store and how many rows were checked so far. Raises `NotFound` for a
    name that is no store's. Damage is reported, not raised.
    """
    reporter = Reporter(progress)
    for problem in repository.engine.check():
        reporter.add("", problem)
    if reporter.findings:
        return reporter.report()  # a page that is not there must not be touched
    contents = Contents(repository.engine, reporter)
    with reporter.guarded(""):
        stores = _stores(repository, names)
        for store in stores:
            reporter.begin(store.name, is_fork=bool(store.base))
            _verify_store(repository, store, contents, reporter)
        reporter.begin("")
        check_feed(repository.engine, stores, reporter)
    if names is None:
        with reporter.guarded(""):
            check_stores(repository.engine, reporter)
        with reporter.guarded(""):
            contents.check_unused()
        with reporter.guarded(""):
            check_journal(repository, reporter)
    return reporter.report()


def _stores(repository: Repository, names: Iterable[str] | None) -> list[Store]:
    """Each with its forks after it, but those whose row is damaged, which `check_stores` reports."""
    with repository.engine.reading() as reader:
        if names is not None:
            return [
                each
                for store in [catalog.named(reader, name) for name in names]
                for each in (store, *_forks(reader, store.id))
            ]
        stores = []
        for _, identifier in reader.scan(Table.NAMES, b"", b"\xff"):
            with contextlib.suppress(Corrupt, NotFound):
                store = catalog.get(reader, keys.read_u32(identifier))
                stores += [store, *_forks(reader, store.id)]
        return stores


def _forks(reader: Reader, store: int) -> list[Store]:
    """The forks of a store, each with a name of its own for the report."""
    with contextlib.suppress(Corrupt, NotFound):
        found = list(catalog.forks(reader, store))
        return [replace(fork, name=f"{fork.name} (fork {fork.id})") for fork in found]
    return []  # which `check_stores` reports


def _verify_store(repository: Repository, store: Store, contents: Contents, reporter: Reporter) -> None:
    """One check that cannot go on does not keep the others from running."""
    engine = repository.engine
    with reporter.guarded(store.name):
        check_chain(engine, store, reporter)
    with reporter.guarded(store.name):
        if store.base:
            ForkRows(engine, store, contents, reporter).check()
        else:
            Rows(engine, store, contents, reporter).check()
            check_pending(engine, store, reporter)
