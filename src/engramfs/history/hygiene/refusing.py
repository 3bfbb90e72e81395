"""A store with `secrets = "refuse"`: what looks like a secret may not be written to it.

That holds for contents, names, where symbolic links lead, extended attributes and messages. Where nobody can
look, since the library is not installed, nothing may be written to such a store.
"""

import msgspec

from engramfs.errors import HoldsSecret
from engramfs.history.hygiene.detectors import MISSING, is_available
from engramfs.history.hygiene.scanning import Found, attribute_as_text, find, find_in_name
from engramfs.model.names import printable

_INSTEAD = "write where it is kept instead"


class Objection(msgspec.Struct, frozen=True):
    """Why a content may not be written: `found`, or, if empty, that nobody can look."""

    found: tuple[Found, ...]

    def to(self, path: str) -> HoldsSecret:
        """The error for who writes it to `path`: where it is and of what kind, and never what."""
        line = self.found[0].line if self.found else 0
        return self._error(f"to write {path}", f"line {line}", _INSTEAD, path=path, line=line)

    def to_name(self, path: bytes) -> HoldsSecret:
        """The same for who makes or renames something. The path is not said, since the secret is in it."""
        return self._error(f"a name{_in_directory(path)}", "it", "choose another")

    def to_target(self, path: str) -> HoldsSecret:
        return self._error(f"the symbolic link {path}", "where it leads", _INSTEAD, path=path)

    def to_attribute(self, path: str) -> HoldsSecret:
        return self._error(f"an extended attribute of {path}", "it", _INSTEAD, path=path)

    def to_message(self) -> HoldsSecret:
        line = self.found[0].line if self.found else 0
        return self._error("a message", f"line {line}", "say it without", line=line)

    def _error(self, refused: str, what: str, do: str, **details: object) -> HoldsSecret:
        if not self.found:
            return HoldsSecret(f"refused {refused}: the store refuses secrets, but {MISSING}")
        kind = self.found[0].kind
        more = f" (and {len(self.found) - 1} more)" if len(self.found) > 1 else ""
        said = f"refused {refused}: {what} looks like a secret ({kind}){more}; {do}"
        return HoldsSecret(said, **details, kind=kind)


def objection(content: bytes) -> Objection | None:
    """What a store that refuses secrets has against a content."""
    if not is_available():
        return Objection(())
    return _unless_none(find(content))


def name_objection(path: bytes) -> Objection | None:
    """The same against a path under which something is to be found that was not there before."""
    if not is_available():
        return Objection(())
    return _unless_none(find_in_name(path))


def attribute_objection(name: bytes, value: bytes) -> Objection | None:
    """The same against an extended attribute."""
    return objection(attribute_as_text(name, value))


def check(path: str, content: bytes) -> None:
    """Raises `HoldsSecret` when there is an objection to a content."""
    objects = objection(content)
    if objects is not None:
        raise objects.to(path)


def check_name(path: bytes) -> None:
    """Raises `HoldsSecret` when there is an objection to a new path."""
    objects = name_objection(path)
    if objects is not None:
        raise objects.to_name(path)


def check_message(message: str) -> None:
    """Raises `HoldsSecret` when there is an objection to what is said of a version."""
    objects = objection(message.encode("utf-8", "surrogatepass")) if message else None
    if objects is not None:
        raise objects.to_message()


def _unless_none(found: list[Found]) -> Objection | None:
    return Objection(tuple(found)) if found else None


def _in_directory(path: bytes) -> str:
    """Where the name was to be, unless that is a secret already."""
    above = path.rpartition(b"/")[0]
    return f" in {printable(above)}" if above and not find(above) else ""
