"""Without root, fusermount3 mounts and hands the connection over."""

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from engramfs.errors import Busy, Unavailable
from engramfs.mount import syscalls
from engramfs.mount.fusermount import mount_unprivileged, unmount_unprivileged
from engramfs.mount.mountinfo import read_mounts, top_mount

MS_BIND = 0x1000


def test_the_descriptor_comes_back_and_is_the_mount(no_mounts_left: None, tmp_path: Path) -> None:
    descriptor = mount_unprivileged(str(tmp_path))
    assert os.readlink(f"/proc/self/fd/{descriptor}") == "/dev/fuse"
    assert not os.get_inheritable(descriptor)
    mounted = top_mount(read_mounts(), str(tmp_path))
    assert mounted is not None
    assert mounted.is_ours
    unmount_unprivileged(str(tmp_path))
    assert top_mount(read_mounts(), str(tmp_path)) is None
    os.close(descriptor)


AS_NOBODY = """
import os, sys
from engramfs.mount.fusermount import mount_unprivileged, unmount_unprivileged
os.setgroups([]); os.setresgid(*[65534] * 3); os.setresuid(*[65534] * 3)
descriptor = mount_unprivileged("/mnt/mine")
print(os.readlink(f"/proc/self/fd/{descriptor}"))
unmount_unprivileged("/mnt/mine")
"""


@pytest.fixture
def place_of_nobody(no_mounts_left: None) -> Iterator[Path]:
    """A directory of uid 65534 in our mount namespace, where every directory above is open to it."""
    syscalls.mount("none", "/mnt", "tmpfs", 0, "mode=755")
    os.mkdir("/mnt/mine")
    os.chown("/mnt/mine", 65534, 65534)
    os.mknod("/mnt/fuse", 0o600 | stat.S_IFCHR, os.stat("/dev/fuse").st_rdev)
    syscalls.mount("/mnt/fuse", "/dev/fuse", None, MS_BIND)
    yield Path("/mnt/mine")
    syscalls.umount2("/dev/fuse", syscalls.MNT_DETACH)
    syscalls.umount2("/mnt", syscalls.MNT_DETACH)


def _as_nobody() -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", AS_NOBODY], capture_output=True, text=True, timeout=20, check=False
    )


def test_another_uid_can_mount_its_own_directory(place_of_nobody: Path) -> None:
    os.chmod("/mnt/fuse", 0o666)
    done = _as_nobody()
    assert (done.stdout, done.stderr) == ("/dev/fuse\n", "")


def test_a_device_that_users_may_not_open_is_named_with_the_cure(place_of_nobody: Path) -> None:
    assert "failed to open /dev/fuse: Permission denied; chmod 666 /dev/fuse" in _as_nobody().stderr


def test_a_stale_mount_is_replaced(no_mounts_left: None, tmp_path: Path) -> None:
    os.close(mount_unprivileged(str(tmp_path)))
    descriptor = mount_unprivileged(str(tmp_path))
    assert len([mount for mount in read_mounts() if mount.point == str(tmp_path)]) == 1
    os.close(descriptor)
    unmount_unprivileged(str(tmp_path))


def test_a_mount_in_use_is_not_replaced(no_mounts_left: None, tmp_path: Path) -> None:
    descriptor = mount_unprivileged(str(tmp_path))
    with pytest.raises(Busy, match="mounted at"):
        mount_unprivileged(str(tmp_path))
    os.close(descriptor)
    unmount_unprivileged(str(tmp_path))


def test_a_missing_fusermount3_names_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="install the package fuse3"):
        mount_unprivileged(str(tmp_path))


def test_a_refusal_is_told_in_the_words_of_fusermount3(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="No such file or directory"):
        mount_unprivileged(str(tmp_path / "missing"))
