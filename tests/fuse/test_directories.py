"""Large directories, and directories that change while they are read."""

import threading

from ..harness.daemon import Place
from ..harness.inside import Inside

MANY = 20_000


def test_a_directory_of_twenty_thousand_is_made_listed_read_and_removed(place: Place) -> None:
    directory = place.path("many")
    place.inside.call("os.mkdir", directory)
    place.inside.call("make_files", directory, [f"{number:05}" for number in range(MANY)], patience=120)
    assert place.inside.call("names", directory) == [f"{number:05}" for number in range(MANY)]
    assert place.inside.shell(f"find {directory} -type f | wc -l") == f"{MANY}\n"
    place.daemon.barrier()
    assert len(place.names(".versions/latest/many")) == MANY
    place.inside.shell(f"rm -r {directory}", timeout=120)
    assert place.names() == []
    place.daemon.barrier()
    changes = place.changes()
    assert sum(len(change) for change in changes) >= 2 * (MANY + 1)
    assert {change for batch in changes for change in batch if change.endswith("/00000")} == {
        "created many/00000",
        "deleted many/00000",
    }


def test_a_listing_that_is_read_while_names_come_and_go_shows_what_stays_once(place: Place) -> None:
    stays = sorted(f"stays{number}" for number in range(2000))
    place.inside.call("make_files", place.state, stays)
    beside = Inside(beside=place.inside.pid)
    stop = threading.Event()

    def disturb() -> None:
        number = 0
        while not stop.is_set():
            beside.call("write", place.path(f"comes{number}"), b"")
            beside.call("os.unlink", place.path(f"comes{number}"))
            number += 1

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        for _ in range(15):
            listed = [
                name for name in place.inside.call("os.listdir", place.state) if name.startswith("stays")
            ]
            assert sorted(listed) == stays
    finally:
        stop.set()
        thread.join()
        beside.close()


def test_dot_and_dot_dot_are_listed_and_lead_where_they_should(place: Place) -> None:
    place.inside.call("os.makedirs", place.path("a/b"))
    lines = place.inside.shell("ls -a; ls -ia .. | head -1; stat -c %i ..", cwd=place.path("a/b")).split()
    assert lines[:2] == [".", ".."]
    assert lines[2] == lines[4]


def test_deep_trees(place: Place) -> None:
    deep = "/".join(["d"] * 200)
    place.inside.call("os.makedirs", place.path(deep))
    place.write(f"{deep}/file", b"deep")
    place.daemon.barrier()
    assert place.read(f".versions/latest/{deep}/file") == b"deep"
    place.inside.shell(f"rm -r {place.path('d')}")
    assert place.names() == []


def test_rm_of_everything_leaves_the_versions(place: Place) -> None:
    place.write("file", b"content")
    place.inside.call("os.makedirs", place.path("a/b"))
    place.daemon.barrier()
    place.inside.shell(f"cd {place.state}; rm -rf -- * .[!.]*")
    assert place.names() == []
    assert place.read(".versions/1/file") == b"content"
