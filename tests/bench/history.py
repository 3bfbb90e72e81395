"""The figures about looking at a history: log, blame and diff where there is very much, beside git."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial

from tests.bench import git_history, stores
from tests.bench.daemon import STATE
from tests.bench.figures import Comparison, Figure, Target
from tests.bench.rounds import in_turns

from engramfs.history import catalog
from engramfs.history.between import between
from engramfs.history.diff import with_renames
from engramfs.history.git_patch import git_patch
from engramfs.history.patch import content_of
from engramfs.history.repository import Repository

LOG = 1_000_000  # versions
BLAMED = 1_000  # versions of one file
_LINES = 500  # of it
_DIRECTORIES, _FILES = 100, 1_000  # of the store whose versions are compared
_CHANGED = 10  # files between the two
_ROUNDS = 9


def history(directory: str) -> Iterator[Figure]:
    """Every figure; each state is written without a mount, and read by commands without a daemon."""
    repository = f"{directory}/git"
    git_history.with_versions(repository, BLAMED, _LINES)
    long, blamed, wide = (f"{directory}/history-{name}" for name in ("long", "blamed", "wide"))
    stores.with_long_log(long, LOG)
    yield _log(long, repository)
    stores.with_edited_file(blamed, BLAMED, _LINES)
    yield _blame(blamed, repository)
    stores.with_few_changes(wide, _DIRECTORIES, _FILES, _CHANGED)
    git_history.with_few_changes(f"{repository}-wide", _DIRECTORIES, _FILES, _CHANGED)
    yield _diff_from_the_log(wide)
    yield _diff(wide, f"{repository}-wide")


def _log(state: str, repository: str) -> Figure:
    seconds = _beside_git(state, ["log", STATE, "-n", "20"], repository, ["log", "-n", "20"])
    return Figure(
        name=f"engramfs log -n 20, {LOG:,} versions",
        unit="ms",
        ours=seconds["ours"] * 1e3,
        peers=(Comparison("git", seconds["git"] * 1e3),),
        target=Target(300),
        note=f"the whole process, a Python interpreter included; git log over {BLAMED:,} commits",
    )


def _blame(state: str, repository: str) -> Figure:
    seconds = _beside_git(state, ["blame", STATE, "file.md"], repository, ["blame", "file.md"])
    return Figure(
        name=f"engramfs blame of a file with {BLAMED:,} versions",
        unit="ms",
        ours=seconds["ours"] * 1e3,
        peers=(Comparison("git", seconds["git"] * 1e3),),
        target=Target(1000),
        note=f"the whole process; about {_LINES} lines, each version changed one",
    )


def _diff_from_the_log(state: str) -> Figure:
    with Repository.open(state) as opened, opened.engine.reading() as reader:
        store = catalog.named(reader, STATE)
        newest = catalog.head(reader, store.id).number

        def once() -> float:
            begun = time.perf_counter()
            lines = 0
            for one in with_renames(between(reader, store, newest - 1, newest)):
                contents = content_of(reader, one.old), content_of(reader, one.new)
                lines += len(list(git_patch(one, *contents)))
            if lines < _CHANGED * 4:
                raise RuntimeError(f"the diff has {lines} lines")
            return time.perf_counter() - begun

        seconds = in_turns({"ours": once}, _ROUNDS)
    return Figure(
        name=f"diff of {_CHANGED} files in a store of {_DIRECTORIES * _FILES:,}, from the log",
        unit="ms",
        ours=seconds["ours"] * 1e3,
        target=Target(50),
        note="in process, the contents read and compared line by line",
    )


def _diff(state: str, repository: str) -> Figure:
    seconds = _beside_git(state, ["diff", STATE], repository, ["diff", "HEAD~", "HEAD"])
    return Figure(
        name="the same, the whole command",
        unit="ms",
        ours=seconds["ours"] * 1e3,
        peers=(Comparison("git", seconds["git"] * 1e3),),
    )


def _beside_git(state: str, ours: list[str], repository: str, git: list[str]) -> dict[str, float]:
    environment = {**os.environ, "ENGRAMFS_STATE": state, "ENGRAMFS_RUN": f"{state}-run"}
    engramfs = [sys.executable, "-m", "engramfs", *ours]
    return in_turns(
        {
            "ours": partial(_run, engramfs, environment),
            "git": partial(_run, ["git", "-C", repository, *git], dict(os.environ)),
        },
        _ROUNDS,
    )


def _run(command: list[str], environment: dict[str, str]) -> float:
    begun = time.perf_counter()
    ended = subprocess.run(command, env=environment, capture_output=True, check=True, timeout=60)
    if not ended.stdout:
        raise RuntimeError(f"{command} said nothing")
    return time.perf_counter() - begun
