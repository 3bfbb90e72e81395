"""Who made a version survives git, and nobody gets further by saying so than with a name."""

from pathlib import Path

import msgspec
import pytest

from engramfs.history import log
from engramfs.model.author import SYSTEM, Author
from engramfs.storage import keys
from engramfs.storage.protocol import Table

from .conftest import AUTHOR, Book, Shelf
from .git_work import Importing, Work, round_trip

ANN = Author("person", actor="Ann Smith")


def signed(book: Book, author: Author, **others: object) -> None:
    """The newest version is by `author`."""
    number = book.head().number
    with book.repository.engine.reading() as reader:
        version = log.version(reader, book.store, number)
    value = msgspec.msgpack.encode(msgspec.structs.replace(version, author=author, **others))
    book.repository.transact(
        lambda writer: writer.put(Table.VERSIONS, keys.version(book.store.id, number), value)
    )


def say(work: Work, text: str, author: str = "digest for alice <digest+alice@engramfs>") -> None:
    """A commit of somebody who knows what a store writes."""
    (work.directory / "a").write_text(text)
    work.git("add", "a")
    work.git("commit", "-q", "--author", author, "-F", "-", said=text.encode())


def claim(**lines: str) -> str:
    """A message that ends as one of a store's would, with these lines for others, or without them."""
    said = {"Store": "memory/x", "Version": "1", "Digest": "00", "Via": "fs", "Author": "agent"}
    said |= {"Agent": "digest", "Actor": "alice", "Session": "s1", **lines}
    return "\n".join(["text", "", *(f"Engramfs-{name}: {value}" for name, value in said.items() if value)])


def authors(importing: Importing) -> list[Author]:
    return [version.author for version in importing.versions()]


@pytest.mark.parametrize(
    ("author", "expected"),
    [
        (AUTHOR, AUTHOR),
        (Author("agent", "digest", "alice", "acme", "s2"), Author("agent", "digest", "alice", "acme", "s2")),
        (Author("agent", "a+b", "c@d:e"), Author("agent", "a+b", "c@d:e")),
        (Author("agent", actor="alice"), Author("agent", actor="alice")),
        (Author("agent"), Author("agent")),
        (ANN, ANN),
        (SYSTEM, Author("person", actor="engramfs")),
    ],
)
def test_an_agent_is_that_agent_when_it_comes_back(
    shelf: Shelf, tmp_path: Path, author: Author, expected: Author
) -> None:
    book = shelf("memory/digest/state")
    book.write(notes=b"1")
    signed(book, author)
    assert authors(round_trip(book, shelf("contexts/back"), tmp_path / "git")) == [expected]


def test_so_it_is_when_it_is_exported_anew_as_another_commit(shelf: Shelf, tmp_path: Path) -> None:
    book, back, again = (shelf(name) for name in ("memory/digest/state", "contexts/back", "contexts/again"))
    book.write(notes=b"1")
    imported = round_trip(book, back, tmp_path / "one")
    text = imported.versions()[0].message.replace("Git-Parent: none", "Git-Parent: " + "0" * 40)
    signed(back, AUTHOR, message=text)
    twice = round_trip(back, again, tmp_path / "two")
    assert twice.work.git("rev-parse", "main") != imported.work.git("rev-parse", "main")
    assert twice.work.git("log", "--format=%an <%ae>") == "digest for alice <digest+alice@engramfs>"
    assert authors(twice) == [AUTHOR]


@pytest.mark.parametrize(
    "author",
    [
        "Ann Smith <ann@example.org>",
        "digest for alice <digest+bob@engramfs>",
        "digest <digest+alice@engramfs>",
    ],
)
def test_a_person_who_commits_with_a_message_of_an_agents_is_that_person(
    importing: Importing, author: str
) -> None:
    say(importing.work, claim(), author)
    importing()
    assert authors(importing) == [Author("person", actor=author.partition(" <")[0])]


@pytest.mark.parametrize(
    "lines",
    [
        {"Author": "system"},
        {"Author": "owner"},
        {"Author": ""},
        {"Agent": "../root"},
        {"Actor": "alice\u202e"},
        {"Session": "x" * 129},
        {"Tenant": "acme"},
    ],
)
def test_lines_that_no_store_writes_make_nobody_an_agent(importing: Importing, lines: dict[str, str]) -> None:
    say(importing.work, claim(**lines))
    importing()
    assert authors(importing) == [Author("person", actor="digest for alice")]


def test_engramfs_itself_wrote_nothing_that_is_imported(importing: Importing) -> None:
    say(importing.work, claim(Author="system", Agent="", Actor=""), "engramfs <engramfs@engramfs>")
    importing()
    assert authors(importing) == [Author("person", actor="engramfs")]


def test_nothing_that_is_imported_was_approved(importing: Importing) -> None:
    """What the commit says of that is there to read, as what the commit says."""
    say(importing.work, claim(Via="approval", Flags="approved, concurrent", Overwrites="1"))
    importing()
    [version] = importing.versions()
    assert (version.author, version.via, version.flags, version.overwrites) == (AUTHOR, "import", (), ())
    described = log.describe(version, [])
    assert (described["via"], described["flags"]) == ("import", [])
    assert described["source"]["Engramfs-Flags"] == "approved, concurrent"
    assert described["source"]["Imported-By"] == "root"


def test_a_commit_says_nothing_of_who_imported_it_or_what_it_was(importing: Importing) -> None:
    say(importing.work, f"{claim()}\nGit-Commit: {'0' * 40}\nGit-Date: x\nImported-By: the owner")
    importing()
    [version] = importing.versions()
    source = log.describe(version, [])["source"]
    assert source["Git-Commit"] == importing.work.git("rev-parse", "HEAD")
    assert source["Imported-By"] == "root"
    assert "Git-Date" not in source


def test_an_export_says_how_a_version_came_and_an_import_keeps_that(shelf: Shelf, tmp_path: Path) -> None:
    book, back = shelf("memory/digest/state"), shelf("contexts/back")
    book.via = "restore"
    book.write(notes=b"1")
    [version] = round_trip(book, back, tmp_path / "git").versions()
    assert (version.via, log.describe(version, [])["source"]["Engramfs-Via"]) == ("import", "restore")
