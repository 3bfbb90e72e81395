"""What goes wrong inside is EIO for one call, a line in the log, and nothing more."""

import errno
import hashlib

import pytest

from engramfs.history.repository import Repository
from engramfs.storage import keys
from engramfs.storage.protocol import Table

from ..harness.daemon import Daemon


def test_damaged_content_is_eio_and_names_the_file_and_the_mount_lives_on(daemon: Daemon) -> None:
    place = daemon.up()
    place.write("damaged", b"content" * 100)
    place.write("sound", b"sound")
    daemon.ok("down")
    digest = hashlib.sha256(b"content" * 100).digest()
    with Repository.open(daemon.state, write="the tests") as repository:
        with repository.engine.reading() as reader:
            whole = reader.get(Table.BLOBS, keys.blob(digest, 0))
        assert whole is not None
        damaged = whole[:-1] + bytes([whole[-1] ^ 1])
        repository.transact(lambda writer: writer.put(Table.BLOBS, keys.blob(digest, 0), damaged))
    place = daemon.up()
    worker = daemon.worker
    for _ in range(3):
        with pytest.raises(OSError, match=f"Errno {errno.EIO}"):
            place.read("damaged")
    with pytest.raises(OSError, match=f"Errno {errno.EIO}"):
        place.write("damaged", b"line", "ab")
    assert place.read("sound") == b"sound"
    place.write("sound", b"still")
    assert daemon.worker == worker
    said = daemon.said()
    assert f"memory/default/state:damaged: blob {digest.hex()}" in said
    found = daemon.command("verify")
    assert found.code == 1
    assert "damaged" in found.out + found.err
    place.write("damaged", b"whole again")
    assert place.read("damaged") == b"whole again"
    daemon.ok("down")
    with Repository.open(daemon.state, write="the tests") as repository:
        repository.transact(lambda writer: writer.put(Table.BLOBS, keys.blob(digest, 0), whole))
    daemon.check_soundness()


def test_a_closed_session_is_stale(daemon: Daemon) -> None:
    place = daemon.up()
    place.write("file", b"content")
    descriptor = place.inside.call("os.open", place.path("file"), 2)
    daemon.client.call("session.close", id=place.session)
    for call, argument in (("os.pread", 10), ("os.pwrite", b"x")):
        with pytest.raises(OSError, match=f"Errno {errno.ESTALE}"):
            place.inside.call(call, descriptor, argument, 0)
    with pytest.raises(OSError, match=f"Errno {errno.ESTALE}"):
        place.write("new", b"")
    with pytest.raises(OSError, match=f"Errno {errno.ESTALE}"):
        place.inside.call("os.close", descriptor)
