"""A session's mounts under a root directory: all or nothing, never outside it, never over what is there."""

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from engramfs.errors import Conflict, NoDaemon, NotFound, Unavailable, UsageError
from engramfs.mount import syscalls
from engramfs.mount.attach import attach_session
from engramfs.mount.copying import MountPlan
from engramfs.mount.detach import detach
from engramfs.mount.mountinfo import read_mounts, top_mount

from .conftest import Hub

PARENT = MountPlan("parents/memory", "/mnt/memory", read_only=True)
STATE = MountPlan("state", "/mnt/memory/state", read_only=False)
PREFERENCES = MountPlan("preferences", "/mnt/memory/preferences", read_only=True)
INSTRUCTIONS = MountPlan("instructions.md", "/instructions.md", read_only=True)
PLAN = [PARENT, STATE, PREFERENCES, INSTRUCTIONS]

MS_SHARED = 0x100000


@pytest.fixture
def served(hub: Hub) -> Hub:
    fill(hub)
    return hub


def fill(hub: Hub) -> None:
    for directory in ("parents/memory/state", "parents/memory/preferences", "state", "preferences"):
        (hub.backing / directory).mkdir(parents=True)
    (hub.backing / "preferences" / "tone").write_text("dry")
    (hub.backing / "instructions.md").write_text("be brief")


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    root = tmp_path / "root"
    root.mkdir()
    yield root
    detach(sorted(mount.point for mount in read_mounts() if mount.is_ours and str(root) in mount.point))


def attach(hub: Hub, root: Path, plan: list[MountPlan] = PLAN) -> list[str]:
    return attach_session(hub.point, os.getpid(), str(root), plan)


def attached_under(root: Path) -> list[str]:
    return sorted(mount.point for mount in read_mounts() if mount.point.startswith(f"{root}/"))


def test_everything_is_where_the_plan_says(served: Hub, root: Path) -> None:
    paths = attach(served, root)
    assert paths == [str(root) + plan.target for plan in PLAN]
    assert (root / "mnt/memory/preferences/tone").read_text() == "dry"
    assert (root / "instructions.md").read_text() == "be brief"
    (root / "mnt/memory/state/a").write_text("x")
    assert (served.backing / "state/a").read_text() == "x"


def test_mounts_have_no_devices_no_setuid_and_are_read_only_where_asked(served: Hub, root: Path) -> None:
    attach(served, root)
    for plan in PLAN:
        mount = top_mount(read_mounts(), str(root) + plan.target)
        assert mount is not None
        assert {"nosuid", "nodev", "ro" if plan.read_only else "rw"} <= mount.options
    for place in ("mnt/memory/preferences/new", "mnt/memory/beside"):
        with pytest.raises(OSError, match="Read-only file system"):
            (root / place).write_text("x")


def test_detach_takes_all_off_and_passes_over_what_is_gone(served: Hub, root: Path) -> None:
    paths = attach(served, root)
    syscalls.umount2(paths[1])
    detach(paths)
    detach(paths)
    assert attached_under(root) == []


def test_detach_leaves_mounts_of_others(private_namespace: None, root: Path) -> None:
    syscalls.mount("none", str(root), "tmpfs", 0)
    detach([str(root)])
    syscalls.umount2(str(root))


def test_detach_works_after_the_daemon_died(served: Hub, root: Path) -> None:
    paths = attach(served, root)
    served.kill_worker()
    detach(paths)
    assert attached_under(root) == []


@pytest.mark.parametrize("target", ["mnt/memory", "instructions.md"])
def test_what_is_there_and_not_empty_is_refused_by_name_and_nothing_stays(
    served: Hub, root: Path, target: str
) -> None:
    if target.endswith(".md"):
        (root / target).write_text("mine")
    else:
        (root / target).mkdir(parents=True)
        (root / target / "mine").write_text("mine")
    before = sorted(root.rglob("*"))
    with pytest.raises(Conflict, match=f"{root}/{target} exists and is not empty; move it away"):
        attach(served, root)
    assert attached_under(root) == []
    assert sorted(root.rglob("*")) == before, "the mount points that were made are removed again"


def test_a_file_where_a_directory_belongs_is_refused(served: Hub, root: Path) -> None:
    (root / "mnt").write_text("")
    with pytest.raises(Conflict, match="/mnt"):
        attach(served, root)
    os.unlink(root / "mnt")
    (root / "instructions.md").mkdir()
    with pytest.raises(Conflict, match=r"instructions\.md is not a file"):
        attach(served, root)
    assert attached_under(root) == []


def test_a_source_that_the_daemon_does_not_serve_undoes_everything(served: Hub, root: Path) -> None:
    with pytest.raises(NotFound, match="serves no nothing, which belongs at /mnt/memory/x"):
        attach(served, root, [*PLAN, MountPlan("nothing", "/mnt/memory/x", read_only=True)])
    assert attached_under(root) == []
    assert list(root.iterdir()) == []


@pytest.mark.parametrize("source", ["../secret", "/etc", "link"])
def test_a_source_cannot_lead_out_of_the_hub(served: Hub, root: Path, source: str) -> None:
    (served.backing / "link").symlink_to("/etc")
    with pytest.raises(NotFound):
        attach(served, root, [MountPlan(source, "/x", read_only=True)])
    assert attached_under(root) == []


@pytest.mark.parametrize("target", ["relative", "/mnt/../../out", "/.."])
def test_a_target_that_is_no_plain_absolute_path_is_refused(served: Hub, root: Path, target: str) -> None:
    with pytest.raises(UsageError, match="without"):
        attach(served, root, [MountPlan("state", target, read_only=True)])


def test_symbolic_links_in_the_root_lead_nowhere_outside(served: Hub, root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "mnt").symlink_to("../outside")
    (root / "absolute").symlink_to(outside)
    (root / "outside").mkdir()
    paths = attach(served, root, [PARENT])
    assert paths == [f"{root}/outside/memory"], "as a process chrooted there would resolve it"
    with pytest.raises(Conflict, match="symbolic link to nothing"):
        attach(served, root, [MountPlan("state", "/absolute/x", read_only=True)])
    assert list(outside.iterdir()) == []


def test_attaching_again_replaces_and_does_not_pile_up(served: Hub, root: Path) -> None:
    attach(served, root)
    first = attached_under(root)
    attach(served, root)
    assert attached_under(root) == first


READER = """
import os, sys
reads = 0
while reads < 1000 or not os.path.exists(sys.argv[2]):
    with open(sys.argv[1]) as file:
        assert file.read() == "dry"
    reads += 1
    if reads == 1:
        print("reading", flush=True)
"""


def test_a_place_is_never_bare_while_it_is_replaced(served: Hub, root: Path) -> None:
    """Needs MOVE_MOUNT_BENEATH (Linux 6.5). The reader is a process of its own: it never waits for us."""
    attach(served, root, [PREFERENCES])
    place, enough = root / "mnt/memory/preferences/tone", root.parent / "enough"
    reader = subprocess.Popen(
        [sys.executable, "-c", READER, str(place), str(enough)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert reader.stdout is not None
    reader.stdout.readline()
    swaps = 0
    while reader.poll() is None:
        attach(served, root, [PREFERENCES])
        swaps += 1
        if swaps == 30:
            enough.touch()
    _, said = reader.communicate(timeout=10)
    assert (reader.returncode, said) == (0, b"")


def test_a_root_that_propagates_to_others_is_attached_to_and_replaced(served: Hub, root: Path) -> None:
    """As on a host where systemd makes every mount shared; the hub's own mounts stay apart."""
    syscalls.mount("none", str(root), "tmpfs", 0)
    syscalls.mount("none", str(root), None, MS_SHARED)
    try:
        attach(served, root)
        paths = attach(served, root)
        assert attached_under(root) == sorted(paths)
        (root / "mnt/memory/state/a").write_text("x")
        detach(paths)
        assert attached_under(root) == []
    finally:
        syscalls.umount2(str(root), syscalls.MNT_DETACH)


def test_a_dead_mount_of_another_filesystem_in_the_way_is_said(served: Hub, root: Path) -> None:
    (root / "mnt").mkdir()
    device = os.open("/dev/fuse", os.O_RDWR)
    syscalls.mount(
        "other", f"{root}/mnt", "fuse.other", 0, f"fd={device},rootmode=40000,user_id=0,group_id=0"
    )
    os.close(device)
    try:
        with pytest.raises(Unavailable, match="Transport endpoint is not connected"):
            attach(served, root)
    finally:
        syscalls.umount2(f"{root}/mnt")
    assert list((root / "mnt").iterdir()) == []


def test_stale_mounts_are_replaced_with_all_beneath_them(served: Hub, root: Path, other_hub: Hub) -> None:
    attach(served, root)
    served.kill_worker()
    with pytest.raises(OSError, match="not connected") as caught:
        (root / "mnt/memory/state/x").write_text("lost")
    assert caught.value.errno == errno.ENOTCONN
    fill(other_hub)
    attach(other_hub, root)
    (root / "mnt/memory/state/x").write_text("kept")
    assert (other_hub.backing / "state/x").read_text() == "kept"
    assert len(attached_under(root)) == len(PLAN)


def test_the_mounts_of_another_living_daemon_are_refused(served: Hub, root: Path, other_hub: Hub) -> None:
    fill(other_hub)
    attach(other_hub, root)
    with pytest.raises(Conflict, match="another engramfs daemon"):
        attach(served, root)
    assert (root / "mnt/memory/preferences/tone").read_text() == "dry"


def test_a_hub_in_another_mount_namespace_is_reached(served: Hub, root: Path) -> None:
    """As when the command line runs in a container's namespace and the daemon on the host."""
    code = (
        "import sys, os\n"
        "from engramfs.mount import syscalls\n"
        "from engramfs.mount.attach import attach_session\n"
        "from engramfs.mount.copying import MountPlan\n"
        "syscalls.umount2(sys.argv[1], syscalls.MNT_DETACH)\n"
        "attach_session(sys.argv[1], int(sys.argv[2]), sys.argv[3], [MountPlan('preferences', '/p', True)])\n"
        "print(open(sys.argv[3] + '/p/tone').read(), os.getcwd())\n"
    )
    done = subprocess.run(
        ["unshare", "-m", sys.executable, "-c", code, served.point, str(os.getpid()), str(root)],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
        cwd="/usr",
    )
    assert (done.stdout.split(), done.stderr) == (["dry", "/usr"], "")
    assert attached_under(root) == []


def test_without_a_daemon_it_says_so(private_namespace: None, root: Path) -> None:
    with pytest.raises(NoDaemon, match="engramfs up"):
        attach_session(str(root), os.getpid(), str(root), PLAN)
    with pytest.raises(NoDaemon, match="engramfs up"):
        attach_session(str(root), 2**22 - 1, str(root), PLAN)


def test_a_missing_root_is_said(served: Hub, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="give an existing directory"):
        attach(served, tmp_path / "missing")


def test_a_read_only_root_names_the_mount_point_to_create(served: Hub, root: Path) -> None:
    syscalls.mount("none", str(root), "tmpfs", syscalls.MS_RDONLY)
    try:
        with pytest.raises(Unavailable, match=f"cannot create the mount point {root}/mnt: Read-only"):
            attach(served, root)
    finally:
        syscalls.umount2(str(root))


def test_no_descriptor_is_left_open(served: Hub, root: Path) -> None:
    attach(served, root)
    before = len(os.listdir("/proc/self/fd"))
    attach(served, root)
    with pytest.raises(NotFound):
        attach(served, root, [*PLAN, MountPlan("nothing", "/x", read_only=True)])
    assert len(os.listdir("/proc/self/fd")) == before
