"""Two actors in one daemon, as root in their sandboxes: neither reaches the other's memory by any way.

A sandbox here is a mount namespace with a root directory of its own. What a runtime adds to that (a process
namespace, fewer capabilities) is not counted on, but for one: see `test_handles`.
"""

import errno
import os
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..harness.daemon import Daemon
from ..harness.inside import Inside
from .conftest import Start

HANDLES = str(Path(__file__).parent / "handles.py")


class Sandbox:
    """Root of a sandbox with the session of one actor, whose memory has the file `secret`."""

    def __init__(self, daemon: Daemon, inside: Inside, actor: str) -> None:
        self.inside = inside
        self.actor = actor
        inside.shell("mount -t tmpfs none /mnt; mkdir -p /mnt/root/{usr,proc,dev,lib,lib64,bin,etc}")
        for name in ("usr", "proc", "dev", "lib", "lib64", "bin", "etc"):
            inside.shell(f"[ ! -e /{name} ] || mount --rbind /{name} /mnt/root/{name}")
        inside.call("os.chroot", "/mnt/root")
        inside.call("os.chdir", "/")
        self.session: str = daemon.json("session", "open", "--agent", "shared", "--actor", actor)["id"]
        daemon.ok("attach", self.session, "--pid", str(inside.pid))
        inside.call("write", "/memories/user/secret", f"of {actor}".encode())


@pytest.fixture
def sandboxes(served: Daemon, start: Start) -> Iterator[tuple[Sandbox, Sandbox]]:
    found = Sandbox(served, start(), "iso-one"), Sandbox(served, start(), "iso-two")
    yield found
    for sandbox in found:
        served.ok("session", "close", sandbox.session)


def test_each_sees_its_own_at_the_same_path(sandboxes: tuple[Sandbox, Sandbox]) -> None:
    for sandbox in sandboxes:
        assert sandbox.inside.call("read", "/memories/user/secret") == f"of {sandbox.actor}".encode()
        assert sandbox.inside.call("names", "/memories") == ["user"]


@pytest.mark.parametrize(
    "path",
    [
        "/memories/iso-two",
        "/memories/iso-two/secret",
        "/memories/user/../iso-two",
        "/memories/user/../../iso-two/secret",
        "/memories/user/iso-two",
        "/memories/user/.versions/../../iso-two",
        "/mnt/memory/state/../../../memories/iso-two/secret",
        "/mnt/memory/../stores/memories/iso-two/secret",
        "/memories/../../sessions",
        "/memories/user/../../../../../../sessions",
        "/memories/.versions",
        "/mnt/context/../../stores",
    ],
)
def test_no_path_leads_out_and_what_is_not_there_is_not_forbidden(
    sandboxes: tuple[Sandbox, Sandbox], path: str
) -> None:
    """ENOENT, as for a name that nobody ever had: an error does not tell who else is there."""
    for call in (("os.stat", path), ("read", path), ("names", path), ("os.readlink", path)):
        with pytest.raises(OSError, match=f"Errno {errno.ENOENT}"):
            sandboxes[0].inside.call(*call)


def test_nothing_can_be_made_where_another_would_be(sandboxes: tuple[Sandbox, Sandbox]) -> None:
    for call in (
        ("write", "/memories/iso-two", b"x"),
        ("os.mkdir", "/memories/iso-two"),
        ("os.symlink", "/memories/user", "/memories/iso-two"),
        ("os.rename", "/memories/user/secret", "/memories/iso-two"),
    ):
        with pytest.raises(OSError, match=f"Errno ({errno.EROFS}|{errno.EXDEV})"):
            sandboxes[0].inside.call(*call)


def test_dot_dot_of_an_open_directory_stays_inside(sandboxes: tuple[Sandbox, Sandbox]) -> None:
    """Also of one that is no longer where it was: the kernel walks up within the mount."""
    inside = sandboxes[0].inside
    inside.call("os.makedirs", "/memories/user/a/b")
    directory = inside.call("os.open", "/memories/user/a/b", os.O_RDONLY)
    inside.call("os.rename", "/memories/user/a/b", "/memories/user/b")
    above = inside.call("os.open", "../" * 20, os.O_RDONLY, dir_fd=directory)
    assert "memories" in inside.call("os.listdir", above), "the root of the sandbox, and nothing above"
    assert "sessions" not in inside.call("os.listdir", above)
    for descriptor in (directory, above):
        inside.call("os.close", descriptor)


def test_inode_numbers_of_another_open_nothing(sandboxes: tuple[Sandbox, Sandbox]) -> None:
    """Both memories are on one filesystem, so their numbers differ, and no file has both."""
    one, two = (sandbox.inside.call("os.stat", "/memories/user/secret") for sandbox in sandboxes)
    assert one.st_dev == two.st_dev
    assert one.st_ino != two.st_ino
    found = sandboxes[0].inside.shell(f"find /memories /mnt -xdev -inum {two.st_ino} 2>/dev/null || true")
    assert found == ""


def handle_of(inside: Inside, path: str) -> tuple[int, bytes]:
    """name_to_handle_at(2): the type and bytes of a file's handle."""
    kind, text = inside.shell(f"{sys.executable} {HANDLES} name {path}").split()
    return int(kind), bytes.fromhex(text)


def opened_by_handle(inside: Inside, kind: int, handle: bytes, *prefix: str) -> str:
    """What a process in a sandbox reads or lists by open_by_handle_at(2) from its own memory's mount."""
    command = [*prefix, sys.executable, HANDLES, "open", "/memories/user", str(kind), handle.hex()]
    finished = inside.run(*command)
    return finished.out + finished.err


HUB = struct.pack("=QI", 1, 0)  # inode number 1, generation 0: the root of every FUSE filesystem


def test_handles_of_another_open_nothing_in_a_run_and_in_containers_without_the_capability(
    served: Daemon, start: Start
) -> None:
    """open_by_handle_at(2) takes a mount only to find the filesystem, and all sessions share one.

    FUSE decodes a handle while the kernel remembers the inode (we do not offer export support, so what it
    has forgotten is ESTALE). The root of the hub is always remembered. The kernel asks for
    CAP_DAC_READ_SEARCH in the initial user namespace for that; with the capability in another user
    namespace alone, it opens directories below the mount at hand and nothing else. So a sandbox must not have
    it: container runtimes take it away by default (it was how containers were broken out of in 2014), and
    `engramfs run` does. Whoever gives it to a sandbox gives it the whole hub; this test says so.
    """
    served.ok("run", "--actor", "handles-two", "--", "sh", "-c", "echo hidden > /memories/user/secret")
    other = start()
    other.shell("mount -t tmpfs none /mnt")
    session = served.json("session", "open", "--agent", "shared", "--actor", "handles-two")["id"]
    served.ok("attach", session, "--pid", str(other.pid), "--over")
    other.call("read", "/memories/user/secret")
    kind, handle = handle_of(other, "/memories/user/secret")
    run = ["run", "--actor", "handles-one", "--", sys.executable, HANDLES, "open", "/memories/user"]
    for each in (handle, HUB if len(handle) == 12 else handle):
        finished = served.command(*run, str(kind), each.hex())
        assert "Operation not permitted" in finished.err, finished
    mine = start()
    mine.shell("mount -t tmpfs none /mnt")
    own = served.json("session", "open", "--agent", "shared", "--actor", "handles-one")["id"]
    served.ok("attach", own, "--pid", str(mine.pid), "--over")
    without = ["setpriv", "--bounding-set=-dac_read_search"]
    assert "Operation not permitted" in opened_by_handle(mine, kind, handle, *without)
    in_another = ["unshare", "--user", "--map-root-user"]
    assert "Operation not permitted" in opened_by_handle(mine, kind, handle, *in_another)
    with_mounts = ["unshare", "--user", "--map-root-user", "--mount"]
    said = opened_by_handle(mine, kind, handle, *with_mounts)
    assert "hidden" not in said, said
    assert "hidden" in opened_by_handle(mine, kind, handle), "the truth about root with the capability"
    for identifier in (session, own):
        served.ok("session", "close", identifier)


def test_descriptors_in_proc_are_those_of_ones_own_processes(sandboxes: tuple[Sandbox, Sandbox]) -> None:
    """Opening /proc/self/fd/N again is opening the same file, with the same rights and no others."""
    inside = sandboxes[0].inside
    descriptor = inside.call("os.open", "/memories/user/secret", os.O_RDONLY)
    assert inside.call("read", f"/proc/self/fd/{descriptor}") == b"of iso-one"
    directory = inside.call("os.open", "/memories/user", os.O_RDONLY)
    with pytest.raises(OSError, match=f"Errno {errno.ENOENT}"):
        inside.call("read", f"/proc/self/fd/{directory}/../iso-two/secret")
    preferences = inside.call("os.open", "/mnt/memory/preferences", os.O_RDONLY)
    with pytest.raises(OSError, match=f"Errno {errno.EROFS}"):
        inside.call("write", f"/proc/self/fd/{preferences}/x", b"x")
    for each in (descriptor, directory, preferences):
        inside.call("os.close", each)


def test_a_run_does_not_reach_around_its_namespace_by_the_daemons_processes(served: Daemon) -> None:
    process = f"/proc/{served.worker}"
    script = f"ls {process}/root/ {process}/cwd/; cat {process}/fd/4; nsenter -t {served.worker} -m ls /"
    finished = served.command("run", "--actor", "around", "--", "sh", "-c", script)
    assert (finished.out, finished.err.count("Permission denied")) == ("", 4), finished


def test_what_one_looked_up_in_vain_is_not_made_by_the_other(sandboxes: tuple[Sandbox, Sandbox]) -> None:
    """Cached names, present and missing, are of one view alone."""
    one, two = (sandbox.inside for sandbox in sandboxes)
    with pytest.raises(OSError, match=f"Errno {errno.ENOENT}"):
        one.call("read", "/memories/user/later")
    two.call("write", "/memories/user/later", b"of two")
    with pytest.raises(OSError, match=f"Errno {errno.ENOENT}"):
        one.call("read", "/memories/user/later")
    one.call("write", "/memories/user/later", b"of one")
    assert two.call("read", "/memories/user/later") == b"of two"
    two.call("os.unlink", "/memories/user/later")
    assert one.call("read", "/memories/user/later") == b"of one"


def test_both_see_what_is_shared_and_who_wrote_it(served: Daemon, sandboxes: tuple[Sandbox, Sandbox]) -> None:
    one, two = sandboxes
    one.inside.call("write", "/mnt/memory/state/shared", b"x")
    assert two.inside.call("read", "/mnt/memory/state/shared") == b"x"
    served.barrier()
    mark = two.inside.call("os.getxattr", "/mnt/memory/state/shared", "user.engramfs.author")
    assert mark == b"shared for iso-one"
    assert "iso-one" not in two.inside.call("read", "/memories/user/.versions/status").decode()
