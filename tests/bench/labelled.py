"""Questions whose answers are known, over memories of the kinds that agents keep.

`data/memories.jsonl`: id, category, tags, content. `data/questions.jsonl`: a question and the ids of the
memories that answer it. Half are Chinese, and a fifth of the questions are in another language than their
answer. Memories have neighbours that are easily taken for them: other ports, other deadlines, the same
topic in the other language.
"""

import time
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

import msgspec

from engramfs.history import catalog, commit, importing
from engramfs.history.repository import Repository
from engramfs.model.author import Author
from engramfs.model.record import Record, render
from engramfs.search import Kind, Query
from engramfs.search.searching import Search

Line = TypeVar("Line", bound=msgspec.Struct)

STORE = "memories/alice"
_DATA = Path(__file__).parent / "data"


class Memory(msgspec.Struct, frozen=True):
    id: str
    category: str
    tags: tuple[str, ...]
    content: str


class Question(msgspec.Struct, frozen=True):
    question: str
    answers: tuple[str, ...]  # ids of memories


def memories() -> list[Memory]:
    return _lines("memories.jsonl", Memory)


def questions() -> list[Question]:
    return _lines("questions.jsonl", Question)


def _lines(name: str, kind: type[Line]) -> list[Line]:
    decode = msgspec.json.Decoder(kind).decode
    return [decode(line) for line in (_DATA / name).read_bytes().splitlines()]


def write(state: str, records: Iterable[Memory]) -> None:
    """Make a state directory whose one store has these memories as records, all in one version."""
    plain = Path(state).with_name(Path(state).name + "-plain")
    for one in records:
        record = Record(one.id, one.content, one.category, one.tags, created="2026-01-01T00:00:00Z")
        place = plain / record.path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(render(record), encoding="utf-8")
    with Repository.open(state, write="the bench") as repository:
        now = time.time_ns()
        store = repository.transact(lambda writer: catalog.create(writer, STORE, now=now))
        planned = importing.plan(repository, store, str(plain).encode(), Author("person"), now)
        repository.transact(lambda writer: commit.apply(writer, planned))


def recall(search: Search, kind: Kind, depth: int) -> float:
    """The share of the answers that are among the first `depth` that are found, on average."""
    asked = questions()
    return sum(_found(search, kind, depth, one) for one in asked) / len(asked)


def first_is_right(search: Search, kind: Kind) -> float:
    """The share of the questions of which the first that is found is an answer."""
    asked = questions()
    return sum(_found(search, kind, 1, one) > 0 for one in asked) / len(asked)


def _found(search: Search, kind: Kind, depth: int, asked: Question) -> float:
    found = search.find(Query(asked.question, limit=depth, kind=kind, patience=0.0))
    ids = {Path(one.path).stem for one in found}
    return len(ids.intersection(asked.answers)) / len(asked.answers)
