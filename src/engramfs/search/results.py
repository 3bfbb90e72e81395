"""Hits of the index as they are shown: those that are still so, with the text of the live head."""

from collections.abc import Callable, Iterable, Iterator

from engramfs.model.names import printable
from engramfs.search.fusion import Fused
from engramfs.search.keyword_ranking import Hit
from engramfs.search.keyword_schema import Row
from engramfs.search.live_files import LiveFile
from engramfs.search.query import Found
from engramfs.search.snippet import best_line, snippet


def shown(
    read: Callable[[Row], LiveFile | None], hits: Iterable[tuple[Hit, Fused]], terms: list[str]
) -> Iterator[Found]:
    """What may be shown of `hits`. Lazy: no more is read than is asked for."""
    for hit, how in hits:
        live = read(hit.row)
        if live is not None:
            yield found(hit.row, live, how, terms)


def found(row: Row, live: LiveFile, how: Fused, terms: list[str]) -> Found:
    """The line of the passage that has most of `terms`, and what else is known."""
    lines = live.text.split("\n")[row.first - 1 : row.last]
    at = best_line(lines, terms)
    return Found(
        store=live.store,
        path=printable(row.path),
        line=row.first + at,
        first_line=row.first,
        last_line=row.last,
        snippet=snippet(lines, at, terms) if lines else "",
        score=how.score,
        matched=how.matched,
        version=live.version,
        digest=row.digest.hex(),
        created=row.created,
        updated=row.updated,
        category=row.category,
        agent=row.agent,
        session=row.session,
    )
