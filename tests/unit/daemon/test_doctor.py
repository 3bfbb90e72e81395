"""What the doctor finds: each check against the real thing, sound and not."""

import contextlib
import os
import resource
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from engramfs.daemon.doctor import CHECKS, Finding, Installation, examine, installation_at
from engramfs.daemon.paths import Locations
from engramfs.history import catalog, commit
from engramfs.history.commit import Commit
from engramfs.history.repository import Repository
from engramfs.model.author import SYSTEM
from engramfs.model.entry import Kind
from engramfs.model.operation import Unlink
from engramfs.model.version import Change, ChangeKind
from engramfs.mount import syscalls
from engramfs.mount.hub import abort, mount_hub, open_fuse, unmount
from engramfs.storage import keys
from engramfs.storage.journal import Journal, Record
from engramfs.storage.lock import StoreLock
from engramfs.storage.protocol import Table, Writer

from ...harness.daemon import eventually


@pytest.fixture
def places(tmp_path: Path) -> Locations:
    return Locations(str(tmp_path / "state"), str(tmp_path / "run"), str(tmp_path / "engramfs.toml"))


@pytest.fixture
def repository(places: Locations) -> Iterator[Repository]:
    """A state with one store, closed before the doctor looks, so that nobody holds the lock."""
    with Repository.open(places.state, write="the tests") as repository:
        repository.transact(lambda writer: catalog.create(writer, "contexts/a", now=1))
        yield repository


def found(name: str, places: Locations) -> list[Finding]:
    """What one check finds."""
    return list(CHECKS[name](installation_at(places)))


def one(name: str, places: Locations) -> Finding:
    [finding] = found(name, places)
    return finding


def test_nothing_is_wrong_where_nothing_is_yet(places: Locations) -> None:
    findings = list(examine(installation_at(places)))
    assert [finding for _, finding in findings if finding.level == "problem"] == []
    assert not os.path.exists(places.state)
    assert not os.path.exists(places.run)


def test_every_finding_that_is_not_ok_says_what_it_means_and_what_to_do(
    places: Locations, repository: Repository
) -> None:
    Path(places.config).write_text("nonsense = 1\n")
    repository.close()
    Path(places.state, "lost-1").touch()
    Path(places.state, "spool/1-aa-0").touch()
    findings = [finding for _, finding in examine(installation_at(places))]
    assert len([finding for finding in findings if finding.level != "ok"]) >= 3
    for finding in findings:
        assert finding.found
        assert (finding.level == "ok") == (finding.meaning == finding.do == "")
        assert "\n" not in finding.found + finding.meaning + finding.do


def test_a_configuration_that_no_daemon_would_start_with(places: Locations) -> None:
    assert one("configuration", places).level == "ok"
    Path(places.config).write_text("[batch]\nquiet = 50\n")
    finding = one("configuration", places)
    assert finding.level == "problem"
    assert "batch.quiet" in finding.found


def test_a_lock_that_somebody_holds(places: Locations) -> None:
    assert one("lock", places).found == "nobody holds the store lock"
    os.mkdir(places.state)
    lock = StoreLock(places.state, "engramfs import")
    finding = one("lock", places)
    lock.close()
    assert finding.level == "note"
    assert f"engramfs import (pid {os.getpid()}) holds the store lock" in finding.found
    assert one("lock", places).level == "ok"


def test_a_journal_of_a_daemon_that_died_with_a_torn_end(places: Locations, repository: Repository) -> None:
    repository.close()
    journal = Journal(repository.journal_path, 1 << 20)
    journal.append(Record(1, 1, SYSTEM, 1, Unlink(1, b"a", 1)))
    journal.close()
    with open(repository.journal_path, "ab") as file:
        file.write(b"\0\0\1\0torn")
    left, torn = found("journal", places)
    assert (left.level, torn.level) == ("note", "note")
    assert "1 records" in left.found
    assert "8 bytes at the end of the journal are torn" in torn.found
    Path(repository.journal_path).write_bytes(b"something else entirely")
    assert one("journal", places).level == "problem"


def test_of_a_journal_what_is_in_the_log_is_told_from_what_is_not(
    places: Locations, repository: Repository
) -> None:
    journal = Journal(repository.journal_path, 1 << 20)
    for position in (1, 2):
        journal.append(Record(position, 1, SYSTEM, 1, Unlink(1, b"a", 1)))
    journal.close()

    def seal(writer: Writer, position: int) -> None:
        head = msgspec.structs.replace(catalog.head(writer, 1), journal_position=position)
        catalog.put_head(writer, 1, head)

    repository.transact(lambda writer: seal(writer, 1))
    repository.close()
    left = one("journal", places)
    assert (left.level, "2 records" in left.found) == ("note", True)
    assert "1 of them are not in the log" in left.found
    with Repository.open(places.state, write="the tests") as again:
        again.transact(lambda writer: seal(writer, 2))
    left = one("journal", places)
    assert (left.level, "all of it is in the log" in left.found) == ("ok", True)


def test_a_journal_that_is_nearly_full(places: Locations, repository: Repository) -> None:
    repository.close()
    Path(places.config).write_text('[journal]\nmax_bytes = "100B"\n')
    journal = Journal(repository.journal_path, 1 << 20)
    journal.append(Record(1, 1, SYSTEM, 1, Unlink(1, b"a", 1), b"x" * 100))
    journal.close()
    finding = one("journal", places)
    assert (finding.level, "it is not being sealed" in finding.meaning) == ("problem", True)


@pytest.mark.parametrize(
    ("schema", "level"), [(1, "note"), (keys.SCHEMA, "ok"), (keys.SCHEMA + 1, "problem")]
)
def test_a_log_of_another_schema(places: Locations, repository: Repository, schema: int, level: str) -> None:
    repository.transact(lambda writer: writer.put(Table.META, keys.SCHEMA_KEY, keys.u32(schema)))
    repository.close()
    assert one("schema", places).level == level


def test_a_log_that_was_truncated(places: Locations, repository: Repository) -> None:
    repository.close()
    os.truncate(os.path.join(places.state, "log/data.mdb"), 4096 * 4)
    problems = [(name, each) for name, each in examine(installation_at(places)) if each.level == "problem"]
    assert {"schema", "log", "clock"} <= {name for name, _ in problems}
    assert all("truncated" in finding.found for _, finding in problems)


def test_a_version_from_the_future(places: Locations, repository: Repository) -> None:
    def body(writer: Writer) -> None:
        store = catalog.named(writer, "contexts/a")
        change = Change(ChangeKind.CREATED, b"a", Kind.FILE, 0o644, 0, b"", 2)
        later = time.time_ns() + 3600 * 10**9
        commit.apply(writer, Commit(store.id, SYSTEM, "cli", later, [change], [], 3))

    repository.transact(body)
    repository.close()
    finding = one("clock", places)
    assert finding.level == "problem"
    assert "the newest version of contexts/a" in finding.found


def test_what_earlier_runs_left_behind(places: Locations, repository: Repository) -> None:
    assert found("leftovers", places) == []
    for name in ("lost-1-aa-0", "schema-1", "before-restore-2026-01-01T00-00-00Z", "restoring"):
        os.mkdir(os.path.join(places.state, name))
    Path(places.state, "spool/1-aa-0").touch()
    assert len(found("leftovers", places)) == 2  # the lock is held: the rest may be in use
    repository.close()
    findings = found("leftovers", places)
    assert [finding.level for finding in findings] == ["note"] * 4
    assert "schema-1" in findings[1].found


def test_a_run_directory_that_others_can_enter(places: Locations) -> None:
    assert one("run directory", places).level == "ok"
    os.mkdir(places.run, 0o755)
    assert one("run directory", places).do == f"chmod 700 {places.run}"
    os.chmod(places.run, 0o700)
    assert one("run directory", places).level == "ok"


@contextlib.contextmanager
def limited(which: int, limit: int) -> Iterator[None]:
    before = resource.getrlimit(which)
    resource.setrlimit(which, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(which, before)


def test_few_open_files(places: Locations) -> None:
    with limited(resource.RLIMIT_NOFILE, 300):
        finding = one("open files", places)
    assert finding.level == "problem"
    assert finding.do == "raise it: ulimit -n 65536, or LimitNOFILE=65536 in the unit"
    with limited(resource.RLIMIT_NOFILE, 1024):
        assert one("open files", places).level == "note"


def test_limits_on_the_size_of_files_and_on_address_space_are_named(places: Locations) -> None:
    for name, which, limit, option in (
        ("file size", resource.RLIMIT_FSIZE, "RLIMIT_FSIZE", "ulimit -f unlimited"),
        ("memory", resource.RLIMIT_AS, "RLIMIT_AS", "ulimit -v unlimited"),
    ):
        assert one(name, places).level == "ok"
        with limited(which, 20 << 30):
            finding = one(name, places)
        assert finding.level == ("note" if name == "file size" else "problem")
        assert limit in finding.found
        assert option in finding.do
    with limited(resource.RLIMIT_FSIZE, 1 << 20):
        assert one("file size", places).level == "problem"


def test_a_state_in_memory_and_one_on_a_remote_disk(
    places: Locations, private_namespace: None, tmp_path: Path
) -> None:
    os.mkdir(places.state)
    syscalls.mount("none", places.state, "tmpfs", 0, "size=1m")
    try:
        finding = one("filesystem", places)
        assert (finding.level, "tmpfs" in finding.found) == ("note", True)
        assert found("fsync", places) == []
        assert one("space", places).level == "problem"  # the journal alone may take more
        syscalls.mount("none", places.state, None, 0x20 | syscalls.MS_RDONLY)  # MS_REMOUNT
        assert "read-only" in one("filesystem", places).found
    finally:
        unmount(places.state)
    descriptor = open_fuse()
    mount_hub(descriptor, places.state)
    os.close(descriptor)
    try:
        # Dead, so that it may not be touched: who looks at the state does, and is told.
        problems = [each for _, each in examine(installation_at(places)) if each.level == "problem"]
        assert any(f"{places.state} is dead" in finding.found for finding in problems)
    finally:
        unmount(places.state)


def test_an_overlay_and_a_volatile_one(places: Locations, private_namespace: None, tmp_path: Path) -> None:
    for name in ("lower", "upper", "work", "state"):
        os.mkdir(tmp_path / name)
    layers = f"lowerdir={tmp_path}/lower,upperdir={tmp_path}/upper,workdir={tmp_path}/work"
    for options, level in (("", "note"), (",volatile", "problem")):
        syscalls.mount("overlay", places.state, "overlay", 0, layers + options)
        try:
            finding = one("filesystem", places)
            assert (finding.level, "overlay" in finding.found) == (level, True)
        finally:
            unmount(places.state)


def test_a_mount_whose_daemon_is_dead(places: Locations, private_namespace: None, tmp_path: Path) -> None:
    point = str(tmp_path / "mount")
    os.mkdir(point)
    assert [finding.level for finding in found("stale mounts", places)] == ["ok"]
    descriptor = open_fuse()
    mount_hub(descriptor, point)
    os.close(descriptor)
    try:
        dead, rest = found("stale mounts", places)
        assert (dead.level, rest.level) == ("problem", "ok")
        assert dead.found == f"the daemon behind {point} is dead"
        subprocess.run(dead.do.split(), check=True, timeout=10)
        assert [finding.level for finding in found("stale mounts", places)] == ["ok"]
    finally:
        unmount(point)


def test_a_mount_whose_daemon_hangs(places: Locations, private_namespace: None, tmp_path: Path) -> None:
    point = str(tmp_path / "mount")
    os.mkdir(point)
    descriptor = open_fuse()
    mount_hub(descriptor, point)
    try:
        hanging, _ = found("stale mounts", places)
        assert (hanging.level, "does not answer" in hanging.found) == ("problem", True)
    finally:
        abort(point)
        os.close(descriptor)
        unmount(point)
        eventually(lambda: not _asking(point))


def _asking(point: str) -> bool:
    """Whether the helper that asked is still there: it was killed, and nobody waits for it."""
    try:
        return os.waitpid(-1, os.WNOHANG)[0] == 0
    except ChildProcessError:
        return False


def test_a_check_that_cannot_be_made_is_a_problem_and_the_others_go_on(
    places: Locations, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_installation: Installation) -> Iterator[Finding]:
        yield from ()
        raise OSError(13, "Permission denied", "/somewhere")

    monkeypatch.setitem(CHECKS, "lock", broken)
    findings = dict(examine(installation_at(places)))
    assert findings["lock"].found == "/somewhere: Permission denied"
    assert findings["schema"].level == "ok"
    assert msgspec.json.encode(findings["lock"])
