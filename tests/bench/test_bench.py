"""`make bench`: prints the table, asserts no figure."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.bench
@pytest.mark.timeout(660)
def test_print_the_table() -> None:
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse") or not shutil.which("unshare"):
        pytest.skip("needs root, /dev/fuse and unshare")
    root = Path(__file__).parents[2]
    ended = subprocess.run([sys.executable, "-m", "tests.bench"], cwd=root, timeout=650)
    assert ended.returncode == 0
