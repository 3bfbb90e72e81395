"""A store with `secrets = "refuse"`: what looks like a secret may not be written to it.

Where nobody can look, since the library is not installed, nothing may be written to such a store.
"""

import msgspec

from engramfs.errors import HoldsSecret
from engramfs.history.hygiene.detectors import MISSING, is_available
from engramfs.history.hygiene.scanning import Found, find


class Objection(msgspec.Struct, frozen=True):
    """Why a content may not be written: `found`, or, if empty, that nobody can look."""

    found: tuple[Found, ...]

    def to(self, path: str) -> HoldsSecret:
        """The error for who writes it to `path`: where it is and of what kind, and never what."""
        if not self.found:
            return HoldsSecret(f"refused to write {path}: the store refuses secrets, but {MISSING}")
        first = self.found[0]
        more = f" (and {len(self.found) - 1} more)" if len(self.found) > 1 else ""
        return HoldsSecret(
            f"refused to write {path}: line {first.line} looks like a secret ({first.kind}){more}; "
            "write where it is kept instead",
            path=path,
            line=first.line,
            kind=first.kind,
        )


def objection(content: bytes) -> Objection | None:
    """What a store that refuses secrets has against a content."""
    if not is_available():
        return Objection(())
    found = find(content)
    return Objection(tuple(found)) if found else None


def check(path: str, content: bytes) -> None:
    """Raises `HoldsSecret` when there is an objection to it."""
    objects = objection(content)
    if objects is not None:
        raise objects.to(path)
