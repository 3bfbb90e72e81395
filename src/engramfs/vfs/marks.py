"""What the read-only extended attributes `user.engramfs.*` say of a file, and errors that name it."""

import contextlib
from collections.abc import Iterator

from engramfs.errors import Corrupt, NotFound
from engramfs.history import log
from engramfs.model.entry import Entry
from engramfs.model.names import printable
from engramfs.model.store import Store
from engramfs.storage import keys
from engramfs.storage.protocol import Engine, Table
from engramfs.vfs.node import Place
from engramfs.vfs.view import MARKS


def of_place(
    engine: Engine, store: Store, newest: int, place: Place | None, entry: Entry
) -> dict[bytes, bytes]:
    """Store, content digest, and the version that last recorded the name and who made it.

    A name that no version has yet (it was created a moment ago) has no version and no author.
    """
    found = {MARKS + b"store": store.name.encode()}
    if entry.digest:
        found[MARKS + b"sha256"] = entry.digest.hex().encode()
    with engine.reading() as reader:
        number = newest
        if place is not None and place.parent != keys.NO_PARENT:
            wanted = keys.history(store.id, place.parent, place.name, newest)
            row = reader.at_or_before(Table.HISTORY, wanted)
            number = keys.read_u64(row[0][-8:]) if row and row[0][:-8] == wanted[:-8] else 0
        if number:
            with contextlib.suppress(NotFound):  # redacted or collected since
                author = log.version(reader, store, number).author
                found[MARKS + b"version"] = str(number).encode()
                found[MARKS + b"author"] = author.label().encode()
    return found


@contextlib.contextmanager
def named(store: str, path: bytes) -> Iterator[None]:
    """Say in an error of damaged content which file it is of."""
    try:
        yield
    except Corrupt as error:
        raise Corrupt(f"{store}:{printable(path)}: {error.message}") from error
