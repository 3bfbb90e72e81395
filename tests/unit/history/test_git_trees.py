"""The trees of commits become those of versions, each at the cost of what it changes."""

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from engramfs.history import commit
from engramfs.history.git.edits import mode
from engramfs.history.git.importing import GitImport
from engramfs.history.git.source import Source
from engramfs.model.entry import Kind
from engramfs.storage.protocol import Reader, Row, Table

from .git_work import ROOT, Importing


class CountedReads:
    """A transaction that counts the rows that are read."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.count = 0

    def get(self, table: Table, key: bytes) -> bytes | None:
        self.count += 1
        return self._reader.get(table, key)

    def at_or_after(self, table: Table, key: bytes) -> Row | None:
        self.count += 1
        return self._reader.at_or_after(table, key)

    def at_or_before(self, table: Table, key: bytes) -> Row | None:
        self.count += 1
        return self._reader.at_or_before(table, key)

    def scan(self, table: Table, start: bytes, stop: bytes, *, reverse: bool = False) -> Iterator[Row]:
        for row in self._reader.scan(table, start, stop, reverse=reverse):
            self.count += 1
            yield row

    def keys(self, table: Table, start: bytes, stop: bytes) -> Iterator[bytes]:
        for key in self._reader.keys(table, start, stop):
            self.count += 1
            yield key


@pytest.mark.parametrize("seed", range(3))
def test_each_version_has_the_tree_of_its_commit_whatever_was_in_its_way(
    importing: Importing, seed: int
) -> None:
    chosen = random.Random(seed)
    names = ["a", "b", "a/x", "b/x", "a/x/deep", "b/y/deep"]
    for number in range(12):
        for name in chosen.sample(names, chosen.randint(1, 5)):
            place = importing.work.directory / name
            for way in [importing.work.directory / name.split("/")[0], place.parent]:
                if way != importing.work.directory and (way.is_symlink() or way.is_file()):
                    way.unlink()
            place.parent.mkdir(parents=True, exist_ok=True)
            _change(place, chosen, number)
        importing.work.commit_paths({"always": b"%d" % number})
    importing()
    for number, identifier in enumerate(importing.work.git("rev-list", "--reverse", "HEAD").split(), start=1):
        listed = importing.work.git("ls-tree", "-r", identifier).splitlines()
        expected = {line.partition("\t")[2].encode(): line[:6] for line in listed}
        tree = importing.book.tree(number)
        modes = {
            path: mode(entry).decode() for path, entry in tree.items() if entry.kind is not Kind.DIRECTORY
        }
        assert modes == expected
        directories = {path.rpartition(b"/")[0] for path in tree if path}
        assert {path for path, entry in tree.items() if entry.kind is Kind.DIRECTORY} == directories


def _change(place: Path, chosen: random.Random, number: int) -> None:
    """Something else, or nothing, where something may be."""
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)
    kind = chosen.randrange(4)
    if kind == 0:
        place.symlink_to(f"to {number}")
    elif kind < 3:
        place.write_bytes(b"%d" % number)
        place.chmod(chosen.choice([0o644, 0o755]))


def test_a_commit_costs_what_it_changes_however_many_files_there_are(importing: Importing) -> None:
    importing.work.commit_paths({f"d{number % 20}/f{number}": b"%d" % number for number in range(400)})
    for number in range(3):
        importing.work.commit_paths({"d1/f1": b"new %d" % number, "d2/f2": b"new %d" % number})
    book, reads = importing.book, []
    source = Source(os.fsencode(importing.work.directory), "HEAD")
    run = GitImport(book.repository, book.store, ROOT)
    with source.stream(None) as stream:
        for each in run.commits(stream):
            with book.repository.engine.writing() as writer:
                counted = CountedReads(writer)
                version = commit.apply(writer, run.plan(counted, book.store, each, book.clock))
            run.done(version.number if version is not None else None)
            reads.append(counted.count)
    assert reads[0] > 0
    assert max(reads[1:]) < 10
