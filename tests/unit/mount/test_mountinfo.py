"""mountinfo is read as the kernel writes it, whatever a mount point is called."""

import os
from pathlib import Path

import pytest

from engramfs.mount import syscalls
from engramfs.mount.mountinfo import Mount, Proc, parse, read_mounts, top_mount


def test_a_line_with_optional_fields_and_escapes() -> None:
    line = r"99 28 0:57 /a\040b /mnt/x\011y\134z ro,nosuid shared:7 master:2 - fuse.engramfs engram\012fs rw"
    mount = parse(line)
    assert mount == Mount(
        id=99,
        parent=28,
        major=0,
        minor=57,
        root="/a b",
        point="/mnt/x\ty\\z",
        options=frozenset({"ro", "nosuid"}),
        kind="fuse.engramfs",
        source="engram\nfs",
        super_options=frozenset({"rw"}),
    )
    assert mount.is_ours


def test_a_line_without_optional_fields() -> None:
    assert parse("1 0 8:1 / / rw - ext4 /dev/sda1 rw").kind == "ext4"


def test_another_filesystem_is_not_ours() -> None:
    assert not parse("1 0 0:9 / /x rw - fuse.sshfs host: rw").is_ours


def test_a_line_of_something_else_is_refused() -> None:
    with pytest.raises(ValueError, match="is not in list"):
        parse("this line has more than six words and none is a dash")


@pytest.mark.parametrize(
    "name", ["plain", "a b", "tab\there", "new\nline", "back\\slash", "cr\rhere", "nb\xa0sp"]
)
def test_a_real_mount_with_any_name_is_found(private_namespace: None, tmp_path: Path, name: str) -> None:
    point = str(tmp_path / name)
    os.mkdir(point)
    syscalls.mount("none", point, "tmpfs", 0)
    try:
        found = top_mount(read_mounts(), point)
        assert found is not None
        assert (found.kind, found.point) == ("tmpfs", point)
    finally:
        syscalls.umount2(point)


def test_the_uppermost_of_stacked_mounts_is_what_a_process_meets(
    private_namespace: None, tmp_path: Path
) -> None:
    point = str(tmp_path)
    syscalls.mount("lower", point, "tmpfs", 0)
    syscalls.mount("upper", point, "tmpfs", 0)
    try:
        found = top_mount(read_mounts(), point)
        descriptor, proc = os.open(point, os.O_PATH), Proc()
        assert found is not None
        assert (found.source, found.id) == ("upper", proc.mount_id(descriptor))
        proc.close()
        os.close(descriptor)
        assert top_mount(reversed(read_mounts()), point) == found, "the order of lines must not matter"
    finally:
        syscalls.umount2(point)
        syscalls.umount2(point)
