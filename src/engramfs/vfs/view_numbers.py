"""Which view has which number, so that another worker gives the same view the same inode numbers.

A view is known by its key, a short tuple: ("live", store, uid, gid), ("pinned", store, version, uid, gid),
("writable", session, store, path), ("ask", session, fork, path), ("layout", session), ("versions", number of
the view above it), ("version", number of its `.versions`, version), ("pending", number of its `.versions`),
("offered", number of a view of what is pending, number), ("waiting", store). The hub is number 0 and has no
key.

The file is a JSON array a line, appended to: [number, key part, …], or [number] when the view has ended.
It lives in the run directory, where it is as old as the mount.
"""

import contextlib
import json
import os
from collections.abc import Iterator

Key = tuple[str | int, ...]
_HIDDEN = ("version", "pending", "offered")  # followed by the number of the view above
LAST = (1 << 20) - 1  # a view number has 20 bits


class ViewNumbers:
    """Numbers by key. Without a `path` they are forgotten with the process."""

    def __init__(self, path: str | None = None) -> None:
        self._keys: dict[int, Key] = {}
        self._numbers: dict[Key, int] = {}
        self._next = 1
        self._descriptor = -1
        if path is not None:
            self._load(path)

    def _load(self, path: str) -> None:
        for number, *key in _lines(path):
            if key:
                self._add(number, tuple(key))
            else:
                self._drop(number)
            self._next = number % LAST + 1
        temporary = path + ".new"
        with open(temporary, "w", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.writelines(json.dumps([number, *key]) + "\n" for number, key in self._keys.items())
        os.replace(temporary, path)
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)

    def of(self, key: Key) -> int:
        """The number of the view with this key: the one that it had, or a new one."""
        known = self._numbers.get(key)
        if known is not None:
            return known
        while self._next in self._keys:
            self._next = self._next % LAST + 1
        number = self._next
        self._next = number % LAST + 1
        self._add(number, key)
        self._write([number, *key])
        return number

    def key(self, number: int) -> Key | None:
        """The key of the view with this number, or None."""
        return self._keys.get(number)

    def items(self) -> list[tuple[int, Key]]:
        return list(self._keys.items())

    def below(self, number: int) -> list[int]:
        """The numbers of `.versions` of the view with this number, and of what was entered there."""
        versions = self._numbers.get(("versions", number))
        if versions is None:
            return []
        found = [versions]
        for each, key in self._keys.items():  # what is above came first
            if key[0] in _HIDDEN and key[1] in found:
                found.append(each)
        return found

    def end(self, number: int) -> None:
        """The view has ended; its number may be given to another one day."""
        if number in self._keys:
            self._drop(number)
            self._write([number])

    def _add(self, number: int, key: Key) -> None:
        self._keys[number] = key
        self._numbers[key] = number

    def _drop(self, number: int) -> None:
        key = self._keys.pop(number, None)
        if key is not None:
            self._numbers.pop(key, None)

    def _write(self, line: list[str | int]) -> None:
        if self._descriptor >= 0:
            os.write(self._descriptor, json.dumps(line).encode() + b"\n")

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def former_keys(path: str) -> dict[int, Key]:
    """The views that there were, by number, as far as `path` still says it."""
    keys: dict[int, Key] = {}
    with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
        for line in file:
            with contextlib.suppress(ValueError, TypeError):
                number, *key = json.loads(line)
                keys[int(number)] = tuple(key)
    return keys


def _lines(path: str) -> Iterator[list[int]]:
    try:
        with open(path) as file:
            for line in file:
                if line.endswith("\n"):  # the last one may have been cut short: then its view was never shown
                    yield json.loads(line)
    except FileNotFoundError:
        return
