"""What a text is to the records that are there: known already, a part of one, more than one, or related.

The records that search finds are compared, and those of every version that the index has not taken in yet:
so what another wrote a moment ago is known too.
"""

from typing import Literal, NamedTuple

from engramfs.model.record import Record
from engramfs.search import RELATED, SAME, Text, compare
from engramfs.tools.record_files import RecordFiles
from engramfs.tools.record_search import RecordSearch

Decision = Literal["added", "duplicate", "subset", "superset"]

_DECISIONS: dict[str, Decision] = {"same": "duplicate", "contained": "subset", "contains": "superset"}
_ORDER = ("duplicate", "subset", "superset", "added")


class Verdict(NamedTuple):
    """What to do with the text, and the record for which that is so; or the `related` ones, best first."""

    decision: Decision
    record: Record | None = None
    score: float = 0.0
    related: tuple[tuple[float, Record], ...] = ()


class KnownRecords:
    """Those that `content` is compared with."""

    def __init__(self, content: str, files: RecordFiles, search: RecordSearch) -> None:
        self._text = Text(content)
        self._files = files
        self._position, candidates = search.candidates(content, files)
        self._meanings = {path: meaning for path, _, meaning in candidates}
        self._verdicts = {path: self._verdict(path, record) for path, record, _ in candidates}
        self.version = 0

    def catch_up(self) -> None:
        """Look at what came into the store since the last time, or since the index; `version` is the head."""
        changed = self._files.changed_since(self._position)
        self.version, self._position = changed.version, changed.position
        for path, record in changed.records.items():
            self._meanings.pop(path, None)
            self._verdicts.pop(path, None)
            if record is not None:
                self._verdicts[path] = self._verdict(path, record)

    def _verdict(self, path: str, record: Record) -> Verdict:
        alike = compare(self._text, Text(record.content))
        score = alike.score if alike.kind in _DECISIONS else max(alike.score, self._meanings.get(path, 0.0))
        return Verdict(_DECISIONS.get(alike.kind, "added"), record, score)

    def verdict(self) -> Verdict:
        """The first that there is of: the same, in another, more than another; else the related ones."""
        every = sorted(self._verdicts.values(), key=lambda each: (_ORDER.index(each.decision), -each.score))
        if every and every[0].decision != "added":
            return every[0]
        related = [(min(each.score, SAME), each.record) for each in every if each.record is not None]
        return Verdict("added", related=tuple(each for each in related if each[0] >= RELATED))
