"""Workloads that nobody here wrote, run on a real mount. Slow: `make soak`.

They are looked for in the directory that ENGRAMFS_CONFORMANCE names, or in `shared/conformance` beside the
checkout.
"""

import json
import os
import re
import sys
from pathlib import Path

import pytest

from ..harness.daemon import Daemon

BESIDE = Path(__file__).parents[3] / "shared/conformance"
WORKLOADS = Path(os.environ.get("ENGRAMFS_CONFORMANCE", BESIDE))
NOBODY = 65534
OWNERSHIP = {"chown_and_suid_clear", "other_user_permissions"}  # one sandbox is one principal

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600)]


def workload(name: str) -> str:
    path = WORKLOADS / name
    if not path.exists():
        pytest.skip(f"{path} is not there; set ENGRAMFS_CONFORMANCE")
    return str(path)


@pytest.fixture
def large(daemon: Daemon) -> Daemon:
    """A daemon whose stores take files as large as the workloads make them."""
    daemon.configure('[limits]\nmax_file_size = "2GiB"\nquota = "20GiB"\n')
    return daemon


def test_real_programs(large: Daemon, tmp_path: Path) -> None:
    place = large.up(actor="ann")
    results = tmp_path / "results.json"
    arguments = [sys.executable, workload("realclients.py"), place.state, "-o", str(results)]
    finished = large.inside.run(*arguments, timeout=1800)
    failed = set(re.findall(r"^FAIL\s+(?:\w+/)?(\S+)", finished.out, re.MULTILINE))
    assert failed <= OWNERSHIP, finished.out
    assert json.loads(results.read_text())


@pytest.mark.parametrize("user", [None, NOBODY])
def test_every_way_to_write_to_a_read_only_tree(large: Daemon, user: int | None) -> None:
    script = workload("readonly.py")
    place = large.up(actor="ann")
    prepared = large.directory / "prepared"
    prepared.mkdir()
    large.inside.shell(f"{sys.executable} {script} prepare {prepared}", timeout=300)
    large.ok("import", "memory/default/preferences", str(prepared))
    who = ["--as-nobody"] if user else ["--hard-ro"]
    finished = large.inside.run(sys.executable, script, "check", place.preferences, *who, timeout=600)
    assert finished.code == 0, finished.out


def test_the_tools_of_debian(large: Daemon) -> None:
    place = large.up(actor="ann")
    finished = large.inside.run("bash", workload("debian_tools.sh"), place.state, timeout=3400)
    failed = set(re.findall(r"^FAIL\s+(\S+)", finished.out, re.MULTILINE))
    assert not failed, finished.out
