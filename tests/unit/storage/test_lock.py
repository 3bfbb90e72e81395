"""One writer for a state directory, in this process or another."""

import multiprocessing
import os
import signal
import threading
from pathlib import Path

import pytest

from engramfs.errors import Busy, Unavailable
from engramfs.storage.lock import StoreLock


def test_the_second_writer_is_told_who_the_first_is(tmp_path: Path) -> None:
    lock = StoreLock(str(tmp_path), "engramfs import")
    with pytest.raises(Busy, match=rf"{tmp_path} is in use by engramfs import \(pid {os.getpid()}\)"):
        StoreLock(str(tmp_path), "another")
    lock.close()
    lock.close()
    StoreLock(str(tmp_path), "another").close()


def test_who_has_patience_gets_the_lock_when_the_first_lets_go(tmp_path: Path) -> None:
    lock = StoreLock(str(tmp_path), "engramfs import")
    with pytest.raises(Busy, match=r"which did not let go within 0\.05 s"):
        StoreLock(str(tmp_path), "another", patience=0.05)
    letting_go = threading.Timer(0.1, lock.close)
    letting_go.start()
    StoreLock(str(tmp_path), "another", patience=30).close()
    letting_go.join()


def test_the_lock_of_a_process_that_was_killed_is_free(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    held = context.Event()
    process = context.Process(target=_hold, args=(str(tmp_path), held))
    process.start()
    assert held.wait(30)
    with pytest.raises(Busy, match="the child"):
        StoreLock(str(tmp_path), "the test")
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join(30)
    StoreLock(str(tmp_path), "the test").close()


def _hold(state: str, held) -> None:  # type: ignore[no-untyped-def]
    _lock = StoreLock(state, "the child")
    held.set()
    signal.pause()


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=f"cannot open {tmp_path}/missing/lock: No such file"):
        StoreLock(str(tmp_path / "missing"), "the test")
