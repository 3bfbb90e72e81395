"""Findings and numbers of a verification."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Literal

import msgspec

from engramfs.errors import Corrupt, NotFound

Severity = Literal["error", "note"]
Progress = Callable[[str, int], None]  # store, rows checked so far

_MOST = 1000  # findings that are kept for one store; the rest are counted


class Finding(msgspec.Struct, frozen=True):
    """One thing that is not as it should be. `store` is empty when it belongs to none.

    A `note` is no damage: nothing that was acknowledged is affected.
    """

    store: str
    problem: str
    severity: Severity = "error"


class Report(msgspec.Struct, frozen=True):
    """`blobs` and `bytes` count each content once; `versions` those of forks too, which are `pending`."""

    stores: int
    versions: int
    blobs: int
    bytes: int
    findings: list[Finding]
    pending: int = 0  # offered, whatever became of it

    @property
    def sound(self) -> bool:
        """Whether nothing is damaged."""
        return all(finding.severity == "note" for finding in self.findings)


class Reporter:
    """Collects what the checks find."""

    def __init__(self, progress: Progress) -> None:
        self.findings: list[Finding] = []
        self.stores = 0
        self.pending = 0
        self.versions = 0
        self.blobs = 0
        self.bytes = 0
        self._progress = progress
        self._store = ""
        self._rows = 0
        self._found: dict[str, int] = {}

    def begin(self, store: str, *, is_fork: bool = False) -> None:
        self._store, self._rows = store, 0
        self.stores += bool(store) and not is_fork

    def checked(self, rows: int) -> None:
        self._rows += rows
        self._progress(self._store, self._rows)

    def add(self, store: str, problem: str, severity: Severity = "error") -> None:
        found = self._found[store] = self._found.get(store, 0) + 1
        if found <= _MOST:
            self.findings.append(Finding(store, problem, severity))

    @contextlib.contextmanager
    def guarded(self, store: str) -> Iterator[None]:
        """Turn what keeps a check from going on into a finding."""
        try:
            yield
        except Corrupt as error:
            self.add(store, error.message)
        except msgspec.MsgspecError as error:
            self.add(store, f"a row cannot be read ({error})")
        except NotFound as error:
            if store:
                self.add(store, f"changed while it was checked ({error.message})", "note")
            else:
                raise

    def report(self) -> Report:
        for store, found in self._found.items():
            if found > _MOST:
                self.findings.append(Finding(store, f"{found - _MOST} more findings are left out"))
        return Report(self.stores, self.versions, self.blobs, self.bytes, self.findings, self.pending)
