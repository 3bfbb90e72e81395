"""Memory records: one thing to remember, one file. A call that changes something is one version.

`memory_add` looks first whether the memory says it already, so that it does not fill with the same thing in
other words.
"""

import secrets
import threading
import time
from contextlib import suppress
from typing import Any

import msgspec

from engramfs.client.session import Session
from engramfs.daemon.editing import Written
from engramfs.errors import Conflict, Stale, UsageError
from engramfs.model.file_edit import Create, Delete, FileEdit, Overwrite, Rename
from engramfs.model.record import GENERAL, Record, render
from engramfs.model.times import format_time
from engramfs.tools.known_records import KnownRecords, Verdict
from engramfs.tools.reach import Reach
from engramfs.tools.record_files import RecordFiles, checked_category
from engramfs.tools.record_history import fitting, with_former
from engramfs.tools.record_search import RecordSearch

Answer = dict[str, Any]

replace = msgspec.structs.replace
_ATTEMPTS = 5
_LOOKS = 20  # at what was written while `memory_add` looked; each takes a few milliseconds
_MOST_RELATED = 5


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
        self._adding = threading.Lock()  # what is added at once is looked up one after the other

    @property
    def _session(self) -> Session:
        return self._reach.session

    def memory_add(self, asked: MemoryAdd) -> Answer:
        files = self._files()
        made, _ = fitting(self._made(asked))
        with self._adding:
            known = KnownRecords(made.content, files, self._search)
            for _ in range(_LOOKS):
                known.catch_up()
                with suppress(Stale):  # something was written after the look, the same perhaps
                    added = self._added(asked, made, files, known)
                    trouble = self._search.trouble
                    return (self._search.notice(trouble) if trouble else {}) | added
        raise Conflict("the memory is being changed by others all the time; try again")

    def _added(self, asked: MemoryAdd, made: Record, files: RecordFiles, known: KnownRecords) -> Answer:
        """Raises `Stale` when the memory is not at the version any more that is known."""
        verdict = known.verdict()
        match verdict.record:
            case None:
                written = self._write(files, [Create(made.path, render(made))], known.version)
                answer = {"id": made.id, "taskId": str(written.position), "decision": "added"}
                return answer | _related(verdict)
            case record if verdict.decision == "superset":
                update = MemoryUpdate(
                    record.id, made.content, asked.tags, asked.category, asked.agentId, asked.metadata
                )
                return self._updated(files, update, known.version) | {"decision": "superset"}
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
            with suppress(Stale):
                return self._updated(files, asked)
        raise Conflict(f"record {asked.id} is being changed by others; try again")

    def _updated(self, files: RecordFiles, asked: MemoryUpdate, head: int | None = None) -> Answer:
        before, path, digest = files.get(asked.id)
        after, dropped = fitting(self._after(before, asked))
        edits: list[FileEdit] = [Overwrite(path, render(after), digest)]
        if after.category != before.category:
            edits.append(Rename(path, after.path))
        written = self._write(files, edits, head)
        return {"id": asked.id, "taskId": str(written.position)} | _left_out(dropped)

    def _after(self, before: Record, asked: MemoryUpdate) -> Record:
        now = format_time(time.time_ns())
        content = _content(asked.content)
        return replace(
            before,
            content=content,
            category=checked_category(asked.category) if asked.category else before.category,
            tags=before.tags if asked.tags is None else asked.tags,
            agent=asked.agentId or before.agent,
            session=self._session.id,
            metadata=with_former(before.metadata | (asked.metadata or {}), before, content, now),
            updated=now,
        )

    def memory_delete(self, asked: MemoryDelete) -> Answer:
        files = self._files()
        written = self._write(files, [Delete(files.get(asked.id).path)])
        return {"id": asked.id, "taskId": str(written.position)}

    def _files(self) -> RecordFiles:
        self._reach.refresh()
        return RecordFiles(self._reach)

    def _write(self, files: RecordFiles, edits: list[FileEdit], head: int | None = None) -> Written:
        return self._reach.write(files.attachment, edits, head=head)

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


def _left_out(count: int) -> Answer:
    """What is told where a record's file has no room for all that it said before."""
    if not count:
        return {}
    return {
        "notice": f"{count} of what it said before are only in the versions of its file: there is no room"
    }


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
