"""Finding records: by search where its extra is installed, which is loaded when it is first needed.

What is searched is the memory of the session's actor as the session sees it, with what it wrote that waits
for approval, and nothing else.
"""

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import msgspec

from engramfs.client import Client
from engramfs.client.reading_engine import ReadingEngine
from engramfs.errors import Unavailable, UsageError
from engramfs.model.names import printable, raw
from engramfs.model.record import DIRECTORY, Record, parse
from engramfs.model.times import parse_time
from engramfs.search import RELATED, Place, Query, opened
from engramfs.tools.reach import Reach
from engramfs.tools.record_files import RecordFiles

if TYPE_CHECKING:
    from engramfs.search.searching import Search

_CANDIDATES = 20  # records that `memory_add` compares with
_PATIENCE = 5.0  # seconds that `memory_add` waits for the index; what is not in it yet is not compared with


class MemorySearch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`startTime` and `endTime` are RFC 3339, of when a record was updated."""

    search: str
    limit: int = 10
    offset: int = 0
    category: str | None = None
    agentId: str | None = None  # noqa: N815
    sessionId: str | None = None  # noqa: N815
    startTime: str | None = None  # noqa: N815
    endTime: str | None = None  # noqa: N815


class MemoryTaskWait(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`timeout` in seconds."""

    taskId: str  # noqa: N815
    timeout: float = 60.0


class RecordSearch:
    """`close` gives up what was loaded."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._search: Search | None = None
        self._said: str | None = None  # by the last search, of what a person should know

    @property
    def _client(self) -> Client:
        return self._reach.client

    def memory_search(self, asked: MemorySearch) -> dict[str, Any]:
        if not 1 <= asked.limit <= 100 or asked.offset < 0:
            raise UsageError("limit is 1 to 100, and offset at least 0")
        self._reach.refresh()
        search, files = self._opened(), RecordFiles(self._reach)
        self._client.state.seal()
        waiting = files.waiting()
        query = Query(
            asked.search,
            reach=(Place(files.store),),
            under=DIRECTORY,
            limit=asked.limit,
            offset=asked.offset,
            category=asked.category,
            agent=asked.agentId,
            session=asked.sessionId,
            since=parse_time(asked.startTime) if asked.startTime else None,
            until=parse_time(asked.endTime) if asked.endTime else None,
            drafts=(waiting,),
        )
        found = []
        for hit in search.find(query):
            record = files.at(hit.path)
            if record is not None:
                how = {"score": round(hit.score, 4), "matched": list(hit.matched), "snippet": hit.snippet}
                found.append(described(record) | how | ({} if hit.version else {"pending": True}))
        return {"records": found} | self._notice(search)

    def _notice(self, search: "Search") -> dict[str, str]:
        """What a person should know of the search: once, as long as it is the same."""
        said, self._said = self._said, search.notice
        return {"notice": search.notice} if search.notice and search.notice != said else {}

    def memory_task_wait(self, asked: MemoryTaskWait) -> dict[str, Any]:
        if not asked.taskId.isdecimal():
            raise UsageError(f"{asked.taskId!r} is not a taskId; memory_add and memory_update answer one")
        if not 0 <= asked.timeout <= 600:
            raise UsageError("timeout is 0 to 600 seconds")
        try:
            done = self._opened().wait(int(asked.taskId), asked.timeout)
        except Unavailable as error:
            return {"taskId": asked.taskId, "status": "failed", "reason": error.message}
        return {"taskId": asked.taskId, "status": "done" if done else "timeout"}

    def alike(self, text: str, files: RecordFiles) -> Generator[tuple[Record, float]]:
        """The records that say most nearly what `text` says, with how alike their meaning is (0 to 1).

        Without search these are all records, and nothing is known of their meaning.
        """
        try:
            search = self._opened()
        except Unavailable:
            yield from ((record, 0.0) for record in files.every())
            return
        self._client.state.seal()
        waiting = files.waiting()
        for draft in waiting.files:
            yield parse(draft.content.decode(errors="replace"), printable(draft.path)), 0.0
        search.follow(_PATIENCE)
        for hit in search.similar(text, Place(files.store), DIRECTORY, _CANDIDATES):
            record = files.at(hit.path) if raw(hit.path) not in waiting.hidden else None
            if record is not None:
                yield record, hit.score

    def _opened(self) -> "Search":
        if self._search is None:
            settings = self._client.state.configuration().search.settings()
            self._search = opened(self._client.state.locations.state, ReadingEngine(self._client), settings)
        return self._search

    def close(self) -> None:
        if self._search is not None:
            self._search.close()
            self._search = None


def is_related(score: float) -> bool:
    return score >= RELATED


def described(record: Record) -> dict[str, Any]:
    """A record as tools answer it."""
    return {
        "id": record.id,
        "content": record.content,
        "category": record.category,
        "tags": list(record.tags),
        "agentId": record.agent,
        "sessionId": record.session,
        "metadata": record.metadata,
        "created": record.created,
        "updated": record.updated,
    }
