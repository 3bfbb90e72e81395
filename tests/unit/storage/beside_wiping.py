"""Processes that have the log open beside the one that wipes it: `python beside_wiping.py ROLE LOG`.

Each says when it is ready.

read   opens a read transaction, and checks what it sees when its input ends
write  commits for ever: transaction n sets one of `KEYS` keys to `value(n)`
wipe   wipes for ever
"""

import hashlib
import sys

from engramfs.storage.lmdb_engine import LmdbEngine
from engramfs.storage.lmdb_wiping import Wiping
from engramfs.storage.protocol import Table

KEYS = 200
COUNT = b"count"


def value(number: int) -> bytes:
    """Of all sizes from a few bytes to many pages."""
    return hashlib.sha256(b"%d" % number).digest() * (1, 3, 40, 64, 120, 500, 2000)[number % 7]


def read(log: str) -> None:
    engine = LmdbEngine(log, read_only=True)
    with engine.reading() as reader:
        before = reader.get(Table.BLOBS, b"key")
        print("ready", flush=True)
        sys.stdin.read()
        assert before is not None
        assert reader.get(Table.BLOBS, b"key") == before
    engine.close()


def write(log: str) -> None:
    engine = LmdbEngine(log)
    with engine.reading() as reader:
        number = int(reader.get(Table.META, COUNT) or b"0")
    print("ready", flush=True)
    while True:
        number += 1
        with engine.writing() as writer:
            writer.put(Table.BLOBS, b"%d" % (number % KEYS), value(number))
            writer.put(Table.META, COUNT, b"%d" % number)


def wipe(log: str) -> None:
    print("ready", flush=True)
    while True:
        with Wiping(log) as wiping:
            wiping.wipe_gaps()
            wiping.wipe_free_pages()


if __name__ == "__main__":
    {"read": read, "write": write, "wipe": wipe}[sys.argv[1]](sys.argv[2])
