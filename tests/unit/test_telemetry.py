"""Events are one line each, in a file as JSON and on stderr as key=value."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from engramfs import telemetry


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    yield
    structlog.reset_defaults()


def test_a_file_gets_json_lines_with_the_traceback(tmp_path: Path) -> None:
    path = tmp_path / "log"
    opened = telemetry.configure(path=str(path))
    log = telemetry.logger("control", pid=7)
    log.debug("not at this level")
    try:
        raise ValueError("two\nlines")
    except ValueError:
        log.exception("failed", name=b"\xff")
    opened.close()
    (line,) = path.read_text().splitlines()
    event = json.loads(line)
    assert (event["event"], event["level"], event["component"], event["pid"]) == (
        "failed",
        "error",
        "control",
        7,
    )
    assert event["exception"][0]["exc_value"] == "two\nlines"
    assert event["time"].endswith("Z")
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_stream_gets_key_value_lines() -> None:
    stream = io.StringIO()
    telemetry.configure(stream=stream, level="debug")
    try:
        raise ValueError("two\nlines")
    except ValueError:
        telemetry.logger("keeper").exception("worker ended", code=-9, name="a b")
    (line,) = stream.getvalue().splitlines()
    for part in ("level=error", 'event="worker ended"', "code=-9", 'name="a b"', "component=keeper"):
        assert part in line


def test_importing_it_loads_nothing() -> None:
    script = "import sys, engramfs.telemetry; print('structlog' in sys.modules)"
    child = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert child.stdout.strip() == "False"


def test_a_log_that_cannot_be_written_fails_nothing() -> None:
    full = os.open("/dev/full", os.O_WRONLY | os.O_CLOEXEC)
    stream = io.TextIOWrapper(io.FileIO(full, "w"), write_through=True)
    telemetry.configure(stream=stream)
    telemetry.logger("control").error("said to nobody")
    stream.close()
