"""`.versions`: hidden at the root of each view, with every version, the log and the status."""

import time
from datetime import UTC, datetime

import pytest
import trio

from engramfs.errors import EngramError, NoEntry, ReadOnly
from engramfs.vfs.versions_view import LISTED

from .machine import STORE, Machine, Program


@pytest.fixture
async def ann(machine: Machine) -> Program:
    """A program in a store with three versions of `file`."""
    ann = machine.writes()
    for content in (b"one", b"two", b"three"):
        await ann.save("file", content)
        await machine.seal()
        await trio.sleep(0.01)
    return ann


async def test_it_is_never_listed_and_always_there(machine: Machine, ann: Program) -> None:
    for program in (ann, machine.reads(), machine.reads_version(1)):
        assert program.list() == ["file"]
        assert program.list(".versions") == ["1", "2", "3", "latest", "log", "pending", "status"]
    ann.mkdir("directory")
    with pytest.raises(NoEntry):
        ann.stat("directory/.versions")


async def test_each_number_is_the_tree_then(machine: Machine, ann: Program) -> None:
    ann.mkdir("directory")
    await ann.save("directory/new", b"new")
    await machine.seal()
    assert [ann.read(f".versions/{number}/file") for number in (1, 2, 3, 4)] == [
        b"one",
        b"two",
        b"three",
        b"three",
    ]
    assert ann.read(".versions/4/directory/new") == b"new"
    assert ann.list(".versions/3") == ["file"]


@pytest.mark.parametrize("name", ["0", "4", "01", "-1", "1 ", "one", "@", "@yesterday", "@1970-01-01", "٣"])
async def test_what_is_no_version_is_not_there(ann: Program, name: str) -> None:
    with pytest.raises(NoEntry):
        ann.stat(f".versions/{name}")


async def test_latest_leads_to_the_head(machine: Machine, ann: Program) -> None:
    assert ann.read_link(".versions/latest") == "3"
    await ann.save("file", b"four")
    await machine.seal()
    assert ann.read_link(".versions/latest") == "4"


async def test_a_time_leads_to_the_version_of_then(machine: Machine, ann: Program) -> None:
    moments = [_text(version) for version in _times(machine)]
    assert [ann.read_link(f".versions/@{moment}") for moment in moments] == ["1", "2", "3"]
    assert ann.read_link(f".versions/@{datetime.now(UTC):%Y-%m-%dT%H:%M:%S}.999999Z") == "3"
    assert ann.read_link(".versions/@2999-01-01") == "3"


def _times(machine: Machine) -> list[int]:
    from engramfs.history import catalog, log

    with machine.repository.engine.reading() as reader:
        store = catalog.named(reader, STORE)
        return [version.time for version in reversed(list(log.versions(reader, store.id)))]


def _text(nanoseconds: int) -> str:
    """A moment at most a microsecond later."""
    moment = datetime.fromtimestamp(nanoseconds // 1000 / 1_000_000 + 0.000002, UTC)
    return moment.isoformat().replace("+00:00", "Z")


async def test_the_log_is_text_newest_first(machine: Machine, ann: Program) -> None:
    lines = ann.read(".versions/log").decode().splitlines()
    assert [line.split()[0] for line in lines] == ["3", "2", "1"]
    assert all("digest for ann" in line for line in lines)


async def test_the_status_speaks_of_this_mount(machine: Machine, ann: Program) -> None:
    await ann.save("other", b"")

    def status(program: Program) -> dict[str, str]:
        text = program.read(".versions/status").decode()
        return dict(line.split(maxsplit=1) for line in text.splitlines())

    mine = {
        "access": "read_write",
        "head": "3",
        "session": "ann",
        "shown": "live",
        "store": STORE,
        "unsealed": "1",
        "pending": "0",
    }
    assert status(ann) == mine
    assert status(machine.reads())["access"] == "read_only"
    assert status(machine.reads_version(2))["shown"] == "version 2"


async def test_nothing_in_it_can_be_changed(ann: Program) -> None:
    for path in ("new", "1/new"):
        with pytest.raises(ReadOnly):
            ann_create(ann, f".versions/{path}")
    view, node = ann._filesystem.find(ann.stat(".versions/1/file").inode)
    with pytest.raises(EngramError):
        view.open(node, write=True, truncate=False)
    view, node = ann._filesystem.find(ann.stat(".versions/log").inode)
    with pytest.raises(ReadOnly):
        view.open(node, write=True, truncate=False)


def ann_create(program: Program, path: str) -> None:
    above, _, name = path.rpartition("/")
    view, node = program._filesystem.find(program.stat(above).inode)
    view.create(node, name.encode(), 0o644)


async def test_it_is_there_before_the_first_version(machine: Machine) -> None:
    reader = machine.reads()
    assert reader.list(".versions") == ["log", "pending", "status"]
    assert reader.read(".versions/log") == b""
    with pytest.raises(NoEntry):
        reader.stat(".versions/1")


async def test_only_the_newest_thousand_are_listed_and_all_can_be_entered(machine: Machine) -> None:
    ann = machine.writes()
    started = time.monotonic()
    for number in range(LISTED + 5):
        await ann.save("file", b"%d" % number)
        machine.live().cut()
    await machine.seal()
    names = ann.list(".versions")
    assert len(names) == LISTED + 4
    assert "5" not in names
    assert "6" in names
    assert ann.read(".versions/2/file") == b"1"
    assert time.monotonic() - started < 10
