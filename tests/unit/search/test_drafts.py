"""What one session sees and no head has is found beside what is indexed, and kept nowhere."""

import hashlib

import pytest

from engramfs.model.entry import Entry, Kind
from engramfs.search import Draft, Drafts, EmbedderSettings
from engramfs.search.searching import Search

from .conftest import Book, Opened, Query, paths, put, record


def draft(path: str, content: bytes) -> Draft:
    digest = hashlib.sha256(content).digest()
    entry = Entry(node=99, kind=Kind.FILE, mode=0o644, size=len(content), mtime=5, ctime=5, digest=digest)
    return Draft(path.encode(), entry, content)


@pytest.fixture
def notes(book: Book) -> Book:
    put(book, {"port.md": b"The billing service listens on port 8443.", "pet.md": b"The cat is ill."})
    return book


def test_it_stands_where_its_share_of_the_question_puts_it(notes: Book, search: Search) -> None:
    drafts = Drafts(notes.store.name, (draft("a.md", b"The port"), draft("b.md", b"billing port 8443 new")))
    found = search.find(Query("billing port 8443 new", drafts=(drafts,)))
    assert paths(found) == ["b.md", "port.md", "a.md"]
    assert (found[0].snippet, found[0].version) == ("billing port 8443 new", 0)
    assert paths(search.find(Query("billing port 8443 new"))) == ["port.md"], "it is in no index"


def test_by_meaning_too(notes: Book, open_search: Opened) -> None:
    search = open_search(EmbedderSettings())
    drafts = Drafts(notes.store.name, (draft("tea.md", b"She drinks oolong in the morning."),))
    for _ in range(2):
        found = search.find(Query("她早上喝什么", limit=1, drafts=(drafts,)))
        assert (paths(found), found[0].matched) == (["tea.md"], ("semantic",))


def test_what_the_session_changed_is_found_as_it_sees_it_and_what_it_removed_not_at_all(
    notes: Book, search: Search
) -> None:
    drafts = Drafts(
        notes.store.name,
        (draft("port.md", b"The billing service listens on port 9000."),),
        frozenset([b"port.md", b"pet.md"]),
    )
    assert [one.snippet for one in search.find(Query("billing port", drafts=(drafts,)))] == [
        "The billing service listens on port 9000."
    ]
    assert search.find(Query("8443", drafts=(drafts,))) == []
    assert search.find(Query("cat", drafts=(drafts,))) == []


def test_filters_and_pages_hold_for_it(notes: Book, search: Search) -> None:
    tea = draft("records/taste/1.md", record("She drinks tea.", agentId="digest", sessionId="abc"))
    drafts = Drafts(notes.store.name, (tea, draft("tea.md", b"tea")))

    def find(**how: object) -> list[str]:
        return paths(search.find(Query("tea", drafts=(drafts,), **how)))  # type: ignore[arg-type]

    assert find(category="taste") == find(session="abc") == find(under="records") == ["records/taste/1.md"]
    assert find(category="other") == find(agent="other") == find(until=4) == []
    assert find(limit=1) + find(limit=1, offset=1) == find()
    assert len(find()) == 2
