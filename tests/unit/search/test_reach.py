"""Nothing is found that may not be seen."""

import pytest

from engramfs.search.query import Place
from engramfs.search.searching import Search

from .conftest import Book, Find, Shelf, paths, put, record


@pytest.fixture
def alice(shelf: Shelf) -> Book:
    book = shelf("memories/alice")
    put(book, {"records/diet/a.md": record("Allergic to peanuts.", category="diet")})
    return book


@pytest.fixture
def bob(shelf: Shelf) -> Book:
    book = shelf("memories/bob")
    put(book, {"records/diet/b.md": record("Loves peanuts.", category="diet")})
    return book


def test_two_actors_never_meet(alice: Book, bob: Book, find: Find) -> None:
    for mine in (alice, bob):
        found = find("peanuts loves allergic", reach=(Place(mine.store.name),))
        assert [one.store for one in found] == [mine.store.name]
    assert len(find("peanuts")) == 2
    assert find("peanuts", reach=()) == []
    assert find("peanuts", reach=(Place("memories/nobody"),)) == []


def test_many_files_of_others_do_not_crowd_out_ones_own(alice: Book, bob: Book, find: Find) -> None:
    """The reach is part of the query: a filter of what was ranked would find nothing here."""
    put(bob, {f"peanuts{number}": b"peanuts peanuts peanuts" for number in range(400)})
    assert paths(find("peanuts", reach=(Place("memories/alice"),))) == ["records/diet/a.md"]


def test_a_part_of_a_store_is_all_that_is_seen_of_it(book: Book, find: Find) -> None:
    book.write(skills__tea__md=b"oolong", skillset=b"oolong", other__skills=b"oolong")
    assert paths(find("oolong", reach=(Place(book.store.name, "skills"),))) == ["skills/tea/md"]
    assert paths(find("oolong", reach=(Place(book.store.name, "skillset"),))) == ["skillset"]
    assert paths(find("oolong", under="other")) == ["other/skills"]


def test_a_pin_shows_only_what_was_there_and_still_is(book: Book, find: Find) -> None:
    book.write(same=b"oolong", changed=b"oolong", gone=b"oolong")
    book.write(changed=b"oolong, green", added=b"oolong")
    book.remove("gone")
    assert paths(find("oolong", reach=(Place(book.store.name, version=1),))) == ["same"]
    assert set(paths(find("oolong", reach=(Place(book.store.name),)))) == {"same", "changed", "added"}


def test_filters_are_of_what_the_record_says(book: Book, find: Find) -> None:
    day = 86_400 * 10**9
    put(
        book,
        {
            "records/a/1.md": record("tea", agentId="x", sessionId="s1", updated="2025-01-01"),
            "records/a/2.md": record("tea", agentId="y", sessionId="s2", created="2025-01-03"),
            "records/b/3.md": record("tea", updated="2025-01-05"),
            "other": b"tea",
        },
    )
    new_year = 1_735_689_600 * 10**9
    assert paths(find("tea", agent="x")) == ["records/a/1.md"]
    assert paths(find("tea", session="s2")) == ["records/a/2.md"]
    assert set(paths(find("tea", category="a"))) == {"records/a/1.md", "records/a/2.md"}
    assert paths(find("tea", until=new_year)) == ["other", "records/a/1.md"][1:] or "other" in paths(
        find("tea")
    )
    assert set(paths(find("tea", since=new_year + day, under="records"))) == {
        "records/a/2.md",
        "records/b/3.md",
    }
    assert paths(find("tea", since=new_year + day, until=new_year + 3 * day)) == ["records/a/2.md"]


def test_pages_follow_each_other(book: Book, find: Find) -> None:
    put(book, {f"f{number}": b"tea " * (number + 1) for number in range(25)})
    pages = [paths(find("tea", limit=10, offset=offset)) for offset in (0, 10, 20, 30)]
    assert [len(page) for page in pages] == [10, 10, 5, 0]
    assert len({path for page in pages for path in page}) == 25


def test_the_snippet_is_the_line_that_says_most(book: Book, search: Search, find: Find) -> None:
    book.write(notes=b"# Tea\n\nWater first.\nOolong wants 90 degrees.\nGreen tea wants 75.\n")
    (found,) = find("oolong degrees")
    assert (found.line, found.snippet) == (4, "Oolong wants 90 degrees. Green tea wants 75.")
    book.write(notes=b"x " * 500 + b"oolong " + b"y " * 500)
    (found,) = find("oolong")
    assert len(found.snippet) <= 242
    assert "oolong" in found.snippet
