"""What the keyword index keeps of a passage: its schema, and a passage as a document of it.

One document is one passage. Its text is not stored, only its terms, which a rewrite of the index needs;
what is shown of a hit is read from the live head. Besides, there is one document with the state of the
index.

    store      u64, indexed             the store's id
    under      terms                    a hash of the path and of each directory above it
    category, agent, session   terms    as they are
    updated    i64, fast                nanoseconds since 1970
    terms      text                     `engramfs.search.terms` of the passage, stemmed by the index
    labels     text                     the same of its headings, path, category and tags
    vector     u64, fast                the key of the passage's vector
    row        bytes, stored            Row
    state      term; stored state_row   the state of the index: see `engramfs.search.index_state`

A change of this page, of the terms or of the passages needs another `FORMAT`; then the index is made anew.
"""

import functools
import hashlib
from collections.abc import Iterable

import msgspec
import tantivy

FORMAT = 1
TOKENIZER = "engramfs"
STATE = "state"


class Row(msgspec.Struct, frozen=True, array_like=True):
    """What a hit says before the live head is asked. `created` and `updated` are nanoseconds since 1970."""

    store: int
    path: bytes
    digest: bytes  # of the content that was indexed
    size: int  # of it, in bytes
    first: int  # lines of the passage, 1-based
    last: int
    vector: int  # the key of its vector; 0: it needs none
    created: int
    updated: int
    category: str | None = None
    agent: str | None = None
    session: str | None = None


encode_row = msgspec.msgpack.Encoder().encode
decode_row = msgspec.msgpack.Decoder(Row).decode


@functools.cache
def schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("store", indexed=True, fast=True)
    for name in ("under", "category", "agent", "session", STATE):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    builder.add_integer_field("updated", indexed=True, fast=True)
    for name in ("terms", "labels"):
        builder.add_text_field(name, stored=True, tokenizer_name=TOKENIZER, index_option="freq")
    builder.add_unsigned_field("vector", fast=True)
    builder.add_bytes_field("row", stored=True)
    builder.add_bytes_field("state_row", stored=True)
    return builder.build()


@functools.cache
def analyzer() -> tantivy.TextAnalyzer:
    """Splits terms at blanks and stems them."""
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace())
    return builder.filter(tantivy.Filter.stemmer("english")).build()


def place_term(path: bytes) -> str:
    """The term of `under` for a path: of everything that is there or below it."""
    return hashlib.blake2b(path, digest_size=8).hexdigest()


def document(row: Row, terms: str, labels: str) -> tantivy.Document:
    """A passage; `terms` and `labels` are joined by blanks."""
    made = tantivy.Document()
    made.add_unsigned("store", row.store)
    for above in _at_and_above(row.path):
        made.add_text("under", place_term(above))
    for name, value in (("category", row.category), ("agent", row.agent), ("session", row.session)):
        if value is not None:
            made.add_text(name, value)
    made.add_integer("updated", row.updated)
    made.add_text("terms", terms)
    made.add_text("labels", labels)
    made.add_unsigned("vector", row.vector)
    made.add_bytes("row", encode_row(row))
    return made


def state_document(state: bytes) -> tantivy.Document:
    made = tantivy.Document()
    made.add_text(STATE, STATE)
    made.add_bytes("state_row", state)
    return made


def _at_and_above(path: bytes) -> Iterable[bytes]:
    while path:
        yield path
        path = path.rpartition(b"/")[0]
