"""The search of a client: opened when it is first used, and closed with the client."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from engramfs.client.answers import Attachment, SearchAnswer
from engramfs.client.reading_engine import ReadingEngine
from engramfs.search import Place, Query, opened

if TYPE_CHECKING:
    from engramfs.client.connection import Connection
    from engramfs.search.following import Progress
    from engramfs.search.searching import Search

replace = msgspec.structs.replace


class Searching:
    """Several threads may use it. Raises `Unavailable` without the extra `[search]`."""

    def __init__(self, client: "Connection") -> None:
        self._client = client
        self._search: Search | None = None

    def find(self, query: Query, progress: "Progress | None" = None) -> SearchAnswer:
        """With `progress`, the index is first brought up to date, meaning too where it is asked for.

        It is told what is left to do.

        Both take at most about the query's `patience`. Raises as `engramfs.search.searching.Search.find`.
        """
        search = self.loaded()
        if progress is not None:
            search.catch_up(query.patience, progress, meaning=query.kind != "keyword")
        found = tuple(search.find(query))
        return SearchAnswer(found, (search.notice,) if search.notice is not None else ())

    def find_as_shown(
        self, query: Query, attachments: Sequence[Attachment], progress: "Progress | None" = None
    ) -> SearchAnswer:
        """The same in what a session shows at these attachments, and nothing else."""
        from engramfs.client.drafts import session_drafts

        places = [Place(each.store, each.inside, each.shown_version) for each in attachments]
        with self._client.reading() as reader:
            drafts = session_drafts(reader, attachments)
        answer = self.find(replace(query, reach=tuple(places), drafts=drafts.stores), progress)
        return replace(answer, notices=answer.notices + drafts.notices)

    def loaded(self) -> "Search":
        """The one search of this client. Raises `Unavailable` without the extra."""
        with self._client.lock:
            if self._search is None:
                state = self._client.state
                settings = state.configuration().search.settings()
                self._search = opened(state.locations.state, ReadingEngine(self._client), settings)
            return self._search

    def close(self) -> None:
        """Give up what was loaded; it is loaded again when it is needed."""
        if self._search is not None:
            self._search.close()
            self._search = None
