"""Memory records: one thing to remember, one file. A call that changes something is one version.

`memory_add` looks first whether the memory says it already, so that it does not fill with the same thing in
other words.
"""

import secrets
import time
from typing import Any

import msgspec

from engramfs.client.session import Session
from engramfs.daemon.editing import Written
from engramfs.errors import Conflict, Stale, UsageError
from engramfs.history.edit import check_size
from engramfs.model.file_edit import Create, Delete, FileEdit, Overwrite, Rename
from engramfs.model.record import GENERAL, Record, render
from engramfs.model.times import format_time
from engramfs.tools.known_records import KnownRecords, Verdict
from engramfs.tools.reach import Reach
from engramfs.tools.record_files import RecordFiles, checked_category
from engramfs.tools.record_search import RecordSearch

Answer = dict[str, Any]

replace = msgspec.structs.replace
_ATTEMPTS = 5
_MOST_RELATED = 5
_HISTORY = "history"  # in the metadata: what a record said before


class MemoryAdd(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    content: str
    category: str | None = None
    tags: tuple[str, ...] | None = None
    agentId: str | None = None  # noqa: N815
    metadata: dict[str, Any] | None = None


class MemoryUpdate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    content: str
    tags: tuple[str, ...] | None = None
    category: str | None = None
    agentId: str | None = None  # noqa: N815
    metadata: dict[str, Any] | None = None


class MemoryDelete(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: str


class Records:
    def __init__(self, reach: Reach, search: RecordSearch) -> None:
        self._reach = reach
        self._search = search

    @property
    def _session(self) -> Session:
        return self._reach.session

    def memory_add(self, asked: MemoryAdd) -> Answer:
        files = self._files()
        made = self._made(asked)
        text = render(made)
        check_size(made.path, text)
        known = KnownRecords(made.content, files, self._search)
        known.catch_up()
        verdict = known.verdict()
        match verdict.record:
            case None:
                written = self._write(files, [Create(made.path, text)])
                return {"id": made.id, "taskId": str(written.position), "decision": "added"} | _related(
                    verdict
                )
            case record if verdict.decision == "superset":
                update = MemoryUpdate(
                    record.id, made.content, asked.tags, asked.category, asked.agentId, asked.metadata
                )
                return self.memory_update(update) | {"decision": "superset"}
            case record:
                answer = {"id": record.id, "taskId": str(self._position()), "decision": verdict.decision}
                return answer | _differing(made.content, verdict)

    def _made(self, asked: MemoryAdd) -> Record:
        now = format_time(time.time_ns())
        return Record(
            id=secrets.token_hex(8),
            content=_content(asked.content),
            category=checked_category(asked.category or GENERAL),
            tags=asked.tags or (),
            agent=asked.agentId or self._session.info.agent,
            session=self._session.id,
            metadata=asked.metadata or {},
            created=now,
            updated=now,
        )

    def memory_update(self, asked: MemoryUpdate) -> Answer:
        files = self._files()
        for _ in range(_ATTEMPTS):
            before, digest = files.get(asked.id)
            after = self._updated(before, asked)
            edits: list[FileEdit] = [Overwrite(before.path, render(after), digest)]
            if after.path != before.path:
                edits.append(Rename(before.path, after.path))
            try:
                written = self._write(files, edits)
            except Stale:
                continue
            return {"id": asked.id, "taskId": str(written.position)}
        raise Conflict(f"record {asked.id} is being changed by others; try again")

    def _updated(self, before: Record, asked: MemoryUpdate) -> Record:
        now = format_time(time.time_ns())
        history = before.metadata.get(_HISTORY)
        history = list(history) if isinstance(history, list) else []
        content = _content(asked.content)
        if content != before.content:
            history.append({"value": before.content, "updatedAt": now})
        metadata = before.metadata | (asked.metadata or {}) | ({_HISTORY: history} if history else {})
        return replace(
            before,
            content=content,
            category=checked_category(asked.category or before.category),
            tags=before.tags if asked.tags is None else asked.tags,
            agent=asked.agentId or before.agent,
            session=self._session.id,
            metadata=metadata,
            updated=now,
        )

    def memory_delete(self, asked: MemoryDelete) -> Answer:
        files = self._files()
        record, _ = files.get(asked.id)
        written = self._write(files, [Delete(record.path)])
        return {"id": asked.id, "taskId": str(written.position)}

    def _files(self) -> RecordFiles:
        self._reach.refresh()
        return RecordFiles(self._reach)

    def _write(self, files: RecordFiles, edits: list[FileEdit]) -> Written:
        return self._reach.write(files.attachment, edits)

    def _position(self) -> int:
        from engramfs.history.log import feed_position

        with self._reach.client.reading() as reader:
            return feed_position(reader)


def _content(text: str) -> str:
    """Raises `UsageError` for nothing to remember."""
    content = text.strip("\n")
    if not content.strip():
        raise UsageError("content is empty; say what to remember")
    return content


def _related(verdict: Verdict) -> Answer:
    """What is told of the records that say something alike."""
    if not verdict.related:
        return {}
    related = [
        {"id": record.id, "content": record.content, "score": round(score, 4)}
        for score, record in verdict.related[:_MOST_RELATED]
    ]
    return {"related": related, "advice": "these are related: consider merging them with memory_update"}


def _differing(content: str, verdict: Verdict) -> Answer:
    """What the record says that was found instead, where that is not the same to the letter."""
    if verdict.record is None or verdict.record.content == content:
        return {}
    return {
        "content": verdict.record.content,
        "score": round(verdict.score, 4),
        "advice": "nothing was added: if this record is out of date, change it with memory_update",
    }
