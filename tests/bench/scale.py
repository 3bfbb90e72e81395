"""The figures that are measured against engramfs itself, when it holds very much."""

import os
import subprocess
from collections.abc import Iterator
from functools import partial
from statistics import median

from tests.bench import stores
from tests.bench.daemon import STATE, Daemon, memory
from tests.bench.figures import Comparison, Figure, Target
from tests.bench.file_work import new_content
from tests.bench.rounds import each, in_turns

from engramfs.history import catalog
from engramfs.history.repository import Repository
from engramfs.history.tree import HeadTree, Tree, VersionTree
from engramfs.model.entry import ROOT_NODE

FEW, MANY = 100, 100_000  # versions
_OLD = 50  # the version that is listed
_FILES = 100  # of the store that has them
_STORES, _FILES_IN_EACH = 1_000, 20
_DIRECTORIES, _FILES_IN_DIRECTORY = 100, 1_000  # of the one large store
_LISTING = Target(5)


def versions(directory: str) -> Iterator[Figure]:
    """Sealing and listing in a store of 100 versions and in one of 100,000, each with its own daemon."""
    daemons = {count: Daemon(f"{directory}/versions-{count}") for count in (FEW, MANY)}
    for count, daemon in daemons.items():
        stores.with_versions(daemon.state, _FILES, count)
    with daemons[FEW], daemons[MANY]:
        yield _sealing(daemons[FEW], daemons[MANY])
        yield _listing_through_the_mount(daemons[MANY])
    yield _listing_in_process(daemons[MANY].state)


def _sealing(few: Daemon, many: Daemon) -> Figure:
    def turn(daemon: Daemon) -> float:
        return each(20, partial(_change_and_sync, daemon.writable))

    seconds = in_turns({"few": partial(turn, few), "many": partial(turn, many)}, rounds=15)
    return Figure(
        name=f"sealing one changed file, {MANY:,} versions against {FEW}",
        unit="µs",
        ours=seconds["many"] * 1e6,
        peers=(Comparison(f"{FEW} versions", seconds["few"] * 1e6, Target(1.5)),),
        note="open, write, fsync (which seals), close, through the mount",
    )


def _change_and_sync(directory: str, number: int) -> None:
    descriptor = os.open(f"{directory}/note-{number:04}.md", os.O_WRONLY | os.O_TRUNC)
    os.write(descriptor, new_content())
    os.fsync(descriptor)
    os.close(descriptor)


def _listing_through_the_mount(daemon: Daemon) -> Figure:
    """The kernel keeps no listings, so the worker makes each of them; the head's tree is in its memory."""
    paths = {"head": daemon.writable, "old": f"{daemon.writable}/.versions/{_OLD}"}

    def turn(path: str) -> float:
        return each(50, lambda _: _list(path))

    seconds = in_turns({name: partial(turn, path) for name, path in paths.items()}, rounds=15)
    return Figure(
        name=f"listing {_FILES} files at version {_OLD} of {MANY:,} against at the head",
        unit="µs",
        ours=seconds["old"] * 1e6,
        peers=(Comparison("the head", seconds["head"] * 1e6, _LISTING),),
        note="opendir, readdirplus, closedir through the mount; every listing is asked of the worker",
    )


def _list(path: str) -> None:
    found = len(os.listdir(path))
    if found != _FILES:
        raise RuntimeError(f"{path} has {found} files instead of {_FILES}")


def _listing_in_process(state: str) -> Figure:
    with Repository.open(state) as repository, repository.engine.reading() as reader:
        store = catalog.named(reader, STATE)
        trees: dict[str, Tree] = {"head": HeadTree(reader, store), "old": VersionTree(reader, store, _OLD)}

        def turn(tree: Tree) -> float:
            return each(50, lambda _: list(tree.children(ROOT_NODE)))

        seconds = in_turns({name: partial(turn, tree) for name, tree in trees.items()}, rounds=15)
    return Figure(
        name="the same, from the log alone",
        unit="µs",
        ours=seconds["old"] * 1e6,
        peers=(Comparison("the head", seconds["head"] * 1e6, _LISTING),),
        note="VersionTree.children against HeadTree.children, in process",
    )


def stores_and_files(directory: str) -> Iterator[Figure]:
    """Memory and the start, with 1,000 stores of 20 files and one of 100,000."""
    daemon = Daemon(f"{directory}/stores")
    stores.with_stores(daemon.state, _STORES, _FILES_IN_EACH, _DIRECTORIES, _FILES_IN_DIRECTORY)
    yield _start(daemon)
    with daemon:
        yield _memory(daemon)


def _start(daemon: Daemon) -> Figure:
    taken = []
    for _ in range(4):
        _drop_cached_pages(daemon.state)
        taken.append(daemon.up())
        daemon.down()
    return Figure(
        name="up on an existing state, cold",
        unit="s",
        ours=median(taken[1:]),
        target=Target(1.0),
        note=f"no daemon runs, the state's pages are not cached; {_STORES + 1:,} stores, "
        f"{_STORES * _FILES_IN_EACH + _DIRECTORIES * _FILES_IN_DIRECTORY:,} files",
    )


def _drop_cached_pages(directory: str) -> None:
    os.sync()
    for above, _, names in os.walk(directory):
        for name in names:
            descriptor = os.open(os.path.join(above, name), os.O_RDONLY)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


def _memory(daemon: Daemon) -> Figure:
    worker = daemon.worker()
    before = memory(worker)
    walk = ["find", f"{daemon.hub}/stores", "-type", "f", "-size", "-1000000c"]
    found = subprocess.run(walk, capture_output=True, timeout=120, check=True).stdout.count(b"\n")
    expected = _STORES * _FILES_IN_EACH + _DIRECTORIES * _FILES_IN_DIRECTORY
    if found < expected:  # a new memory has an AGENTS.md of its own
        raise RuntimeError(f"find saw {found:,} files instead of {expected:,}")
    after = memory(worker)
    return Figure(
        name=f"worker RSS, {_STORES:,} stores of {_FILES_IN_EACH} files and one of "
        f"{_DIRECTORIES * _FILES_IN_DIRECTORY:,}",
        unit="MiB",
        ours=after["VmRSS"] / (1 << 20),
        target=Target(250),
        note=f"after find over all; {after['RssAnon'] >> 20} MiB of it its own, {after['RssFile'] >> 20} "
        f"mapped files; before the walk {before['VmRSS'] >> 20}",
    )
