"""Entries of a tree as `show`, `tree` and `diff` have them in JSON."""

from typing import TYPE_CHECKING, Any

from engramfs.model.names import printable

if TYPE_CHECKING:
    from engramfs.model.entry import Entry


def describe(path: bytes, entry: "Entry") -> dict[str, Any]:
    """An entry as JSON: `path`, `kind`, `mode` (octal text), `size`, `mtime`, `sha256`, `target`."""
    from engramfs.model.times import format_time

    return {
        "path": printable(path),
        "kind": entry.kind.name.lower(),
        "mode": f"{entry.mode:04o}",
        "size": entry.size,
        "mtime": format_time(entry.mtime),
        "sha256": entry.digest.hex() or None,
        "target": printable(entry.target) if entry.target else None,
    }
