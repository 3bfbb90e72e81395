"""Going through a table in batches, each in a read transaction of its own."""

from collections.abc import Callable
from itertools import islice

from engramfs.storage.protocol import Engine, Reader, Row, Table

ROWS = 2000  # in one transaction


def in_batches(
    engine: Engine,
    table: Table,
    start: bytes,
    stop: bytes,
    check: Callable[[Reader, list[Row]], None],
    between: Callable[[int], None],
) -> None:
    """Call `check` with rows with `start` <= key < `stop`.

    `between` gets their number after each batch, while no transaction is open. The last batch,
    which may be empty, has fewer than `ROWS` rows.
    """
    while True:
        with engine.reading() as reader:
            rows = list(islice(reader.scan(table, start, stop), ROWS))
            check(reader, rows)
        between(len(rows))
        if len(rows) < ROWS:
            return
        start = rows[-1][0] + b"\0"
