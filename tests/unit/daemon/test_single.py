"""`engramfs mount DIR` and what may be at DIR already."""

import os
from pathlib import Path

import pytest

from engramfs.daemon import single
from engramfs.daemon.paths import Locations
from engramfs.errors import Unavailable
from engramfs.mount import syscalls
from engramfs.mount.hub import open_fuse, unmount


def test_a_dead_mount_of_another_filesystem_is_named_and_left(
    private_namespace: None, tmp_path: Path
) -> None:
    point = str(tmp_path / "point")
    os.mkdir(point)
    descriptor = open_fuse()
    options = f"fd={descriptor},rootmode=40000,user_id=0,group_id=0"
    syscalls.mount("other", point, "fuse.other", 0, options)
    os.close(descriptor)
    try:
        with pytest.raises(Unavailable, match=rf"a mount of fuse\.other .* fusermount3 -u {point}"):
            single.run(
                Locations(str(tmp_path / "state"), str(tmp_path / "run"), str(tmp_path / "none")),
                point,
                agent="default",
                actor=None,
                tenant=None,
            )
    finally:
        unmount(point)
