"""Which passages may be found at all. It is part of every query, so that nothing else is even ranked."""

import msgspec
import tantivy

from engramfs.search.keyword_schema import place_term, schema

_EARLIEST, _LATEST = -(1 << 63), (1 << 63) - 1


class Filter(msgspec.Struct, frozen=True):
    """All that is given must hold. `places`: (store id, path; empty for all of it); None: every store."""

    places: tuple[tuple[int, bytes], ...] | None = None
    under: bytes = b""
    category: str | None = None
    agent: str | None = None
    session: str | None = None
    since: int | None = None  # nanoseconds since 1970, inclusive
    until: int | None = None


def filter_query(wanted: Filter) -> tantivy.Query:
    """As a query of the keyword index, every hit of which scores 0."""
    kinds = schema()
    parts = [_places(wanted.places)] if wanted.places is not None else []
    if wanted.under:
        parts.append(tantivy.Query.term_query(kinds, "under", place_term(wanted.under)))
    for name in ("category", "agent", "session"):
        value = getattr(wanted, name)
        if value is not None:
            parts.append(tantivy.Query.term_query(kinds, name, value))
    if wanted.since is not None or wanted.until is not None:
        earliest = _EARLIEST if wanted.since is None else wanted.since
        latest = _LATEST if wanted.until is None else wanted.until
        parts.append(tantivy.Query.range_query(kinds, "updated", tantivy.FieldType.Integer, earliest, latest))
    if not parts:
        return tantivy.Query.const_score_query(tantivy.Query.all_query(), 0.0)
    every = tantivy.Query.boolean_query([(tantivy.Occur.Must, part) for part in parts])
    return tantivy.Query.const_score_query(every, 0.0)


def place_query(store: int, path: bytes) -> tantivy.Query:
    """The passages of a store at and below `path`."""
    return _places(((store, path),))


def _places(places: tuple[tuple[int, bytes], ...]) -> tantivy.Query:
    kinds = schema()
    whole = [store for store, inside in places if not inside]
    wanted = [tantivy.Query.term_set_query(kinds, "store", whole)] if whole else []
    for store, inside in places:
        if inside:
            both = (
                tantivy.Query.term_query(kinds, "store", store),
                tantivy.Query.term_query(kinds, "under", place_term(inside)),
            )
            wanted.append(tantivy.Query.boolean_query([(tantivy.Occur.Must, part) for part in both]))
    if not wanted:
        return tantivy.Query.empty_query()
    return tantivy.Query.boolean_query([(tantivy.Occur.Should, part) for part in wanted])
