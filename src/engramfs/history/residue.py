"""Bytes of removed rows that are in the file of the log yet.

Whoever removes something for good leaves this mark in the same transaction. Wiping the file
(`engramfs.storage.lmdb_wiping`) clears it, unless something else was removed meanwhile.
"""

import secrets

from engramfs.storage import keys
from engramfs.storage.protocol import Reader, Table, Writer


def leave_residue(writer: Writer) -> None:
    writer.put(Table.META, keys.RESIDUE_KEY, secrets.token_bytes(8))


def residue(reader: Reader) -> bytes:
    """What was removed last is known by this; empty when nothing is left of it."""
    return reader.get(Table.META, keys.RESIDUE_KEY) or b""


def clear_residue(writer: Writer, known: bytes) -> None:
    """What was removed when the residue was `known` is wiped."""
    if residue(writer) == known:
        writer.delete(Table.META, keys.RESIDUE_KEY)
