"""A git repository that a person works in, and a store that it is imported into."""

import os
import subprocess
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType

from engramfs.history import commit, log
from engramfs.history.git.building_on import where_to_go_on
from engramfs.history.git.exporting import export
from engramfs.history.git.fast_export import GitCommit
from engramfs.history.git.importing import GitImport
from engramfs.history.git.source import Source
from engramfs.history.verify import verify
from engramfs.model.author import Author
from engramfs.model.entry import Kind
from engramfs.model.version import Version
from engramfs.storage import blobs
from engramfs.storage.protocol import Writer

from .conftest import Book

ROOT = Author("person", actor="root")
NOTHING: Mapping[str, str] = MappingProxyType({})


class Work:
    """A git repository that a person works in."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        if not directory.exists():
            directory.mkdir()
            self.git("init", "--quiet", "-b", "main")
        self.git("config", "user.name", "Ann Smith")
        self.git("config", "user.email", "ann@example.org")

    def git(self, *arguments: str, said: bytes = b"", variables: Mapping[str, str] = NOTHING) -> str:
        """What git says; `variables` are of its environment."""
        environment = {
            **os.environ,
            "GIT_AUTHOR_DATE": "1700000000 +0200",
            "GIT_COMMITTER_DATE": "1700000000 +0200",
            **variables,
        }
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.directory,
            env=environment,
            capture_output=True,
            timeout=30,
            check=True,
            input=said,
        )
        return done.stdout.decode().strip()

    def commit(self, text: str = "work", **files: bytes | None) -> str:
        """A commit with these files written (None: removed); `__` in a name is `/`. Its id."""
        return self.commit_paths({name.replace("__", "/"): content for name, content in files.items()}, text)

    def commit_paths(self, files: Mapping[str, bytes | None], text: str = "work") -> str:
        for name, content in files.items():
            place = self.directory / name
            if content is None:
                place.unlink()
            else:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(content)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", text)
        return self.git("rev-parse", "HEAD")


class Importing:
    def __init__(self, work: Work, book: Book) -> None:
        self.work = work
        self.book = book

    def __call__(self, ref: str = "HEAD", *, over: bool = False) -> GitImport:
        book, source = self.book, Source(os.fsencode(self.work.directory), ref)
        last = where_to_go_on(book.repository, book.store, source, over=over)
        run = GitImport(book.repository, book.store, ROOT, last.number if last else 0, over=over)
        with source.stream(last.commit if last else None) as stream:
            for each in run.commits(stream):
                run.done(book.repository.transact(partial(self._commit, run, each)))
        assert verify(book.repository, [book.store.name]).findings == []
        return run

    def _commit(self, run: GitImport, each: GitCommit, writer: Writer) -> int | None:
        version = commit.apply(writer, run.plan(writer, self.book.store, each, self.book.clock))
        return version.number if version is not None else None

    def versions(self) -> list[Version]:
        """Oldest first."""
        with self.book.repository.engine.reading() as reader:
            return list(log.versions(reader, self.book.store.id))[::-1]

    def files(self, number: int | None = None) -> dict[bytes, bytes]:
        """The content of each file, and the target of each symlink."""
        found = {}
        with self.book.repository.engine.reading() as reader:
            for path, entry in self.book.tree(number).items():
                if entry.kind is not Kind.DIRECTORY:
                    content = blobs.read(reader, entry.digest, entry.size) if entry.digest else entry.target
                    found[path] = content
        return found


def round_trip(book: Book, back: Book, directory: Path) -> Importing:
    """`book`, exported to git, imported into `back`."""
    export(book.repository, book.store, os.fsencode(directory))
    importing = Importing(Work(directory), back)
    importing()
    return importing
