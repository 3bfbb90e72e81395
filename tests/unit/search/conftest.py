"""Search over a store that a test writes as plain values."""

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import pytest

from engramfs.history.repository import Repository
from engramfs.search import EmbedderSettings, Found, Query, opened
from engramfs.search.searching import Search

from ..history.conftest import Book, Shelf, book, repository, shelf, state

__all__ = ["Book", "Query", "Shelf", "book", "repository", "shelf", "state"]

WORDS = EmbedderSettings(semantic=False)

Opened = Callable[[EmbedderSettings], Search]


class Find(Protocol):
    def __call__(self, text: str, **how: Any) -> list[Found]: ...


@pytest.fixture
def open_search(repository: Repository) -> Iterator[Opened]:
    """Opens searches over the log, as processes of their own would."""
    made: list[Search] = []

    def make(settings: EmbedderSettings = WORDS) -> Search:
        made.append(opened(repository.state, repository.engine, settings))
        return made[-1]

    yield make
    for search in made:
        search.close()


@pytest.fixture
def search(open_search: Opened) -> Search:
    """By keywords alone."""
    return open_search(WORDS)


@pytest.fixture
def find(search: Search) -> Find:
    return lambda text, **how: search.find(Query(text, **how))


def paths(found: list[Found]) -> list[str]:
    return [one.path for one in found]


def put(book: Book, files: dict[str, bytes]) -> None:
    """One version that writes these files."""
    book.write_paths({path.encode(): content for path, content in files.items()})


def record(body: str, **fields: str) -> bytes:
    """A record as a file."""
    lines = [f"{name}: {value}" for name, value in fields.items()]
    return "\n".join(["---", *lines, "---", body, ""]).encode()
