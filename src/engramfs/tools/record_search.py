"""Finding records: by search where its extra is installed, which is loaded when it is first needed.

What is searched is the memory of the session's actor as the session sees it, with what it wrote that waits
for approval, and nothing else.
"""

import threading
import time
from typing import Any, NamedTuple

import msgspec

from engramfs.client import Client
from engramfs.errors import StorageError, Unavailable, UsageError
from engramfs.history.log import feed_position
from engramfs.model.names import printable, raw
from engramfs.model.record import DIRECTORY, Record, parse
from engramfs.model.times import parse_time
from engramfs.search import Place, Query
from engramfs.search.failures import IndexUnwritable
from engramfs.tools.reach import Reach
from engramfs.tools.record_files import RecordFiles
from engramfs.tools.telling import without_host_paths

_SLICE = 0.5  # seconds of a wait, which ends early at the end of one
_PATIENCE = 0.1  # seconds that `memory_add` waits for the index: it looks at newer versions by itself
_PASSAGES = 1  # that gets its vector meanwhile, if it is short: mostly the one that was added before


_NO_INDEX = (
    "search is not available: its index can be neither read nor made; "
    "the log of this process tells a person what to do"
)


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


class Candidate(NamedTuple):
    """A record by its path in the store, and the likeness of its meaning, from 0 to 1."""

    path: str
    record: Record
    meaning: float


class RecordSearch:
    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._is_closed = threading.Event()
        self._said: str | None = None  # by the last search, of what a person should know
        self.trouble: str | None = None  # of the index, when candidates were last asked for

    @property
    def _client(self) -> Client:
        return self._reach.client

    def memory_search(self, asked: MemorySearch) -> dict[str, Any]:
        if not 1 <= asked.limit <= 100 or asked.offset < 0:
            raise UsageError("limit is 1 to 100, and offset at least 0")
        try:
            return self._found(asked)
        except (StorageError, IndexUnwritable) as error:
            raise self._unavailable(error) from error

    def _found(self, asked: MemorySearch) -> dict[str, Any]:
        self._reach.refresh()
        search, files = self._client.searching.loaded(), RecordFiles(self._reach)
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
        return {"records": found} | self.notice(search.notice)

    def notice(self, what: str | None) -> dict[str, str]:
        """What a person should know of the search: once, as long as it is the same."""
        said, self._said = self._said, what
        if not what or what == said:
            return {}
        return {"notice": without_host_paths(what, self._client.state.locations)}

    def _unavailable(self, error: StorageError | IndexUnwritable) -> Unavailable:
        """What an agent hears; the log has the rest."""
        self._reach.told(error)
        return Unavailable(_NO_INDEX)

    def memory_task_wait(self, asked: MemoryTaskWait) -> dict[str, Any]:
        if not asked.taskId.isdecimal():
            raise UsageError(f"{asked.taskId!r} is not a taskId; memory_add and memory_update answer one")
        if not 0 <= asked.timeout <= 600:
            raise UsageError("timeout is 0 to 600 seconds")
        try:
            done = self._waited(int(asked.taskId), asked.timeout)
        except (StorageError, IndexUnwritable) as error:
            return _failed(asked, self._unavailable(error).message)
        except Unavailable as error:
            return _failed(asked, self._reach.told(error))
        return {"taskId": asked.taskId, "status": "done" if done else "timeout"}

    def _waited(self, position: int, timeout: float) -> bool:
        """Whether the index is so far, within `timeout` seconds and before `close`."""
        deadline = time.monotonic() + timeout
        search = self._client.searching.loaded()
        while not self._is_closed.is_set():
            left = max(0.0, deadline - time.monotonic())
            if search.wait(position, min(left, _SLICE)):
                return True
            if left <= _SLICE:
                break
        return False

    def candidates(self, text: str, files: RecordFiles) -> tuple[int, list[Candidate]]:
        """The records that may say what `text` says, as they were at a position of the feed.

        Without search these are all records, and nothing is known of their meaning.
        """
        self._client.state.seal()
        try:
            found = self._candidates(text, files)
        except (StorageError, IndexUnwritable) as error:
            self.trouble = self._unavailable(error).message
        except Unavailable:
            self.trouble = None  # it is not installed
        else:
            self.trouble = None
            return found
        with self._client.reading() as reader:
            position = feed_position(reader)
        return position, [Candidate(path, record, 0.0) for path, record in files.every()]

    def _candidates(self, text: str, files: RecordFiles) -> tuple[int, list[Candidate]]:
        search = self._client.searching.loaded()
        waiting = files.waiting()
        drafts = {printable(draft.path): draft.content.decode(errors="replace") for draft in waiting.files}
        found = [Candidate(path, parse(content, path), 0.0) for path, content in drafts.items()]
        search.follow(_PATIENCE, _PASSAGES)
        position = search.position()
        for path, meaning in search.candidates(text, Place(files.store), DIRECTORY):
            record = files.at(path) if raw(path) not in waiting.hidden else None
            if record is not None and path not in drafts:
                found.append(Candidate(path, record, meaning))
        return position, found

    def close(self) -> None:
        """Let who waits in another thread wait no longer."""
        self._is_closed.set()


def _failed(asked: MemoryTaskWait, reason: str) -> dict[str, Any]:
    return {"taskId": asked.taskId, "status": "failed", "reason": reason}


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
