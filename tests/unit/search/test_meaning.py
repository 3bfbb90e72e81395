"""Search by meaning with the real model: across words and languages, and as the log changes."""

import threading
import time
from collections.abc import Sequence

import numpy
import pytest
from numpy.typing import NDArray

from engramfs.errors import Unavailable
from engramfs.history.repository import Repository
from engramfs.search import EmbedderSettings, Place
from engramfs.search.bundled_embedder import BundledEmbedder, language_of
from engramfs.search.index_directory import IndexDirectory
from engramfs.search.indexer import AT_ONCE, Indexer
from engramfs.search.searching import Search

from .conftest import WORDS, Book, Opened, Query, Shelf, paths, put, record

MEANING = EmbedderSettings()


class Counting:
    """Counts how many passages it is given at once."""

    identity, least = "counting", 0.0

    def __init__(self) -> None:
        self.counts: list[int] = []

    def passages(self, texts: Sequence[str]) -> NDArray[numpy.float32]:
        self.counts.append(len(texts))
        return numpy.eye(len(texts), 64, dtype=numpy.float32)

    def question(self, text: str) -> NDArray[numpy.float32]:
        return numpy.ones(64, dtype=numpy.float32) / numpy.float32(8)


@pytest.fixture
def search(open_search: Opened) -> Search:
    return open_search(MEANING)


@pytest.fixture
def notes(book: Book) -> Book:
    put(
        book,
        {
            "drink.md": b"She drinks green tea in the morning.",
            "pet.md": "家里的猫叫小黑，每天早上打针。".encode(),
            "port.md": b"The billing service listens on port 8443.",
            "trip.md": b"The office in Porto opens in March.",
        },
    )
    return book


@pytest.mark.parametrize(
    ("question", "path"),
    [
        ("which beverage does she like", "drink.md"),
        ("她喝什么茶", "drink.md"),
        ("the cat gets an injection", "pet.md"),
        ("计费服务的端口", "port.md"),
        ("8443", "port.md"),
    ],
)
def test_a_question_finds_its_answer_in_either_language(
    notes: Book, search: Search, question: str, path: str
) -> None:
    assert paths(search.find(Query(question, limit=1))) == [path]


def test_a_hit_says_how_it_matched(notes: Book, search: Search) -> None:
    assert search.find(Query("port of the billing service"))[0].matched == ("keyword", "semantic")
    assert search.find(Query("她喝什么茶"))[0].matched == ("semantic",)
    assert search.find(Query("8443", kind="keyword"))[0].matched == ("keyword",)


def test_what_has_nothing_to_do_with_the_question_is_not_found(notes: Book, search: Search) -> None:
    assert len(search.find(Query("broken umbrella", kind="semantic"))) < 2
    assert search.find(Query("how do I cook rice", kind="semantic", under="port.md")) == []


def test_changes_of_the_log_are_followed(notes: Book, search: Search) -> None:
    assert paths(search.find(Query("hot beverage", limit=1))) == ["drink.md"]
    put(notes, {"drink.md": b"The lift is out of order."})
    assert "drink.md" not in paths(search.find(Query("hot beverage", kind="semantic")))
    assert paths(search.find(Query("broken elevator", limit=1))) == ["drink.md"]
    notes.remove("drink.md")
    assert "drink.md" not in paths(search.find(Query("broken elevator")))


def test_two_actors_never_meet(notes: Book, shelf: Shelf, search: Search) -> None:
    other = shelf("memories/bob")
    put(other, {"a.md": b"He drinks black tea at noon."})
    for mine, others in ((notes, other), (other, notes)):
        found = search.find(Query("tea", reach=(Place(mine.store.name),)))
        assert found
        assert {one.store for one in found} == {mine.store.name} != {others.store.name}


def test_a_candidate_has_the_likeness_of_its_meaning(notes: Book, search: Search) -> None:
    search.catch_up(60)

    def candidates(text: str) -> dict[str, float]:
        return dict(search.candidates(text, Place(notes.store.name)))

    assert candidates("In the mornings she has green tea.")["drink.md"] > 0.5
    assert all(meaning < 0.5 for meaning in candidates("The train to Rome leaves at nine.").values())
    said = "She drinks green tea in the morning."
    assert candidates(said)["drink.md"] == pytest.approx(1, abs=0.01)
    assert candidates(f"{said}\n\n# More\n" + "Lorem ipsum. " * 5000)["drink.md"] > 0.9


def test_of_a_long_question_as_much_is_embedded_as_of_a_passage(
    notes: Book, search: Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = BundledEmbedder.question
    asked: list[int] = []

    def question(self: BundledEmbedder, text: str) -> NDArray[numpy.float32]:
        asked.append(len(text))
        return real(self, text)

    monkeypatch.setattr(BundledEmbedder, "question", question)
    search.catch_up(60)
    for long in ("Does she drink green tea? " * 380, "她喝绿茶吗？" * 1600):
        found = search.find(Query(long, reach=(Place(notes.store.name),)))
        assert "drink.md" in paths(found)
    assert max(asked) <= 1200


def test_what_a_record_says_makes_it_a_candidate(book: Book, open_search: Opened) -> None:
    put(book, {"records/a/1.md": record("Deploys happen on Tuesdays.", agentId="digest", sessionId="abc")})
    words = open_search(WORDS)
    words.catch_up(60)
    place = Place(book.store.name)
    assert words.candidates("Deploys happen on Tuesdays.", place, "records") == [("records/a/1.md", 0.0)]
    long = "\n".join(f"word{number} stands here" for number in range(5000))
    assert words.candidates(f"{long} Tuesdays", place, "records") == [("records/a/1.md", 0.0)]


def test_no_vector_is_made_twice(notes: Book, search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    search.catch_up(60)

    def refuse(self: BundledEmbedder, texts: object) -> None:
        raise AssertionError(f"embedded again: {texts}")

    monkeypatch.setattr(BundledEmbedder, "passages", refuse)
    notes.rename("drink.md", "tea.md")
    put(notes, {"copy.md": b"She drinks green tea in the morning."})
    assert set(paths(search.find(Query("green tea", kind="semantic", limit=2)))) == {"tea.md", "copy.md"}


def test_without_the_extra_words_are_searched_and_that_is_said(
    book: Book, open_search: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engramfs.search.bundled_embedder.find_spec", lambda _name: None)
    search = open_search(MEANING)
    put(book, {"a.md": b"oolong"})
    assert search.notice is not None
    assert "engramfs[semantic]" in search.notice
    assert paths(search.find(Query("oolong"))) == ["a.md"]
    with pytest.raises(Unavailable, match=r"engramfs\[semantic\]"):
        search.find(Query("oolong", kind="semantic"))


def test_a_search_does_not_wait_for_all_meanings(book: Book, open_search: Opened) -> None:
    put(book, {f"f{number}": f"the {number}th cup of tea".encode() for number in range(150)})
    search = open_search(MEANING)
    first = search.find(Query("cup", limit=200))
    assert len(first) == 150, "all are found by keywords"
    assert sum("semantic" in one.matched for one in first) < 150
    deadline = time.monotonic() + 60
    while sum("semantic" in one.matched for one in search.find(Query("cup of tea", limit=200))) < 150:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_step_does_some_and_says_what_is_left(book: Book, search: Search) -> None:
    put(book, {f"f{number}": f"number {number}".encode() for number in range(AT_ONCE + 6)})
    indexer: Indexer = search._following._indexer
    left = []
    while True:
        step = indexer.step(0)
        assert step is not None
        left.append(step.passages)
        if step.is_last:
            break
    assert left == sorted(left, reverse=True)
    assert left[0] == 6


def test_a_step_does_fewer_of_long_passages(book: Book, repository: Repository) -> None:
    put(book, {f"f{number}": b"%d " % number + b"tea " * 200 for number in range(60)})
    embedder = Counting()
    indexer = Indexer(repository.engine, IndexDirectory(repository.state), embedder)
    while (step := indexer.step(0)) is not None and not step.is_last:
        pass
    assert sum(embedder.counts) == 60
    assert embedder.counts[0] < 30


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("hello", "english"),
        ("8443", "english"),
        ("你好 hello", "chinese"),
        ("先查 Address already in use 再重启", "chinese"),
        ("お茶を飲む", "japanese"),
        ("차를 마신다", "korean"),
        ("", "english"),
    ],
)
def test_the_language_is_that_of_the_characters(text: str, language: str) -> None:
    assert language_of(text) == language


def test_vectors_have_length_one() -> None:
    vectors = BundledEmbedder().passages(["tea", "茶", "\ud800 \0", ""])
    assert numpy.allclose(numpy.linalg.norm(vectors, axis=1), 1, atol=1e-3)


def test_passages_that_threads_divide_have_the_vectors_that_each_has_alone() -> None:
    embedder = BundledEmbedder()
    texts = [f"the {number}th cup of tea" + " is still warm" * (number % 5) for number in range(23)]
    together = embedder.passages(texts)
    assert together.shape == (23, 384)
    for text, vector in zip(texts, together, strict=True):
        assert numpy.allclose(vector, embedder.passages([text])[0], atol=1e-5)


def test_a_question_does_not_wait_for_passages() -> None:
    embedder = BundledEmbedder()
    embedder.question("warm")
    texts = [f"the {number}th cup of tea " + "is still warm " * 20 for number in range(60)]
    embedding = threading.Thread(target=embedder.passages, args=(texts,))
    embedding.start()
    embedder.question("which cup of tea is still warm")
    assert embedding.is_alive(), "the passages take longer than a question"
    embedding.join()
