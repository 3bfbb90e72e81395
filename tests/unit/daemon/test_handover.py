"""systemd's protocol between keeper and worker, from the worker's side (sd_listen_fds(3), sd_notify(3))."""

import os
import select
from pathlib import Path

import pytest

from engramfs.daemon import handover
from engramfs.daemon.notifications import Message, Notifications


def test_descriptors_meant_for_another_process_are_not_taken() -> None:
    environment = {"LISTEN_PID": "1", "LISTEN_FDS": "2", "LISTEN_FDNAMES": "fuse:control", "HOME": "/"}
    assert handover.received_descriptors(environment) == {}
    assert environment == {"HOME": "/"}, "no child of ours may take them either"


def test_without_a_keeper_there_are_no_descriptors() -> None:
    assert handover.received_descriptors({}) == {}


def test_without_a_keeper_nothing_is_notified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    assert not handover.notify("READY=1")


def test_a_notification_reaches_the_keeper(monkeypatch: pytest.MonkeyPatch) -> None:
    notifications = Notifications()
    monkeypatch.setenv("NOTIFY_SOCKET", notifications.address)
    assert handover.notify("READY=1", "STATUS=3 stores")
    assert notifications.receive(os.getpid()) == Message({"READY": "1", "STATUS": "3 stores"})
    assert notifications.receive(os.getpid()) is None, "and is read once"
    notifications.close()


def test_only_the_worker_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    notifications = Notifications()
    monkeypatch.setenv("NOTIFY_SOCKET", notifications.address)
    handover.notify("READY=1")
    assert notifications.receive(os.getpid() + 1) == Message({})
    notifications.close()


def test_a_started_process_gets_its_descriptors_in_order_whatever_their_numbers(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("first")
    (tmp_path / "b").write_text("second")
    descriptors = {name: os.open(tmp_path / name, os.O_RDONLY) for name in ("a", "b")}
    swapped = {"b": descriptors["b"], "a": descriptors["a"]}
    script = (
        'cat <&3; cat <&4; echo " $LISTEN_FDS $LISTEN_FDNAMES $(( LISTEN_PID == $$ )) $PWD"; ls /proc/$$/fd'
    )
    reader, writer = os.pipe()
    child = handover.start(["sh", "-c", f"({script}) >&2"], swapped, {"PATH": os.environ["PATH"]}, writer)
    os.close(writer)
    assert os.waitpid(child, 0)[1] == 0
    assert select.select([reader], [], [], 5)[0]
    said = os.read(reader, 1000).decode().split()
    assert said == ["secondfirst", "2", "b:a", "1", "/", "0", "1", "2", "3", "4"]
    for descriptor in (reader, *descriptors.values()):
        os.close(descriptor)
