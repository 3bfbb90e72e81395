"""Search: the heads of all stores by keywords and by meaning. Imports history and what is below it.

query            what is asked, and what is answered
searching        the one object that others use
 ├ keyword_ranking, meaning_ranking   of what may be found (filters)
 ├ drafts        what one session sees and no head has
 ├ fusion        two rankings become one
 ├ live_files    a hit is only shown as the log has it now
 └ results       what is shown of it (snippet)
following        who searches brings the index up to the log (backlog: the rest, in a thread)
indexer          the index follows the log, a step at a time
 ├ log_changes   what the log has that the index has not
 ├ differences   the same file by file
 ├ indexed_file  a file as rows of the index (document, passages, terms)
 ├ meanings      passages get their vectors
 └ forgetting    text that is gone goes from the index's files too
keyword_index, snapshot, keyword_schema, index_state, failures   the index of keywords
vectors, embedder                                                the index of meanings
 └ bundled_embedder (bundled_model), endpoint_embedder           what turns text into vectors
index_directory, open_index   where both are, whose turn it is to write, and what is read now
likeness         how alike two texts are, without any index

Importing this package loads neither library nor model.
"""

from typing import TYPE_CHECKING

from engramfs.errors import Unavailable
from engramfs.search.embedder import EmbedderSettings
from engramfs.search.likeness import RELATED, SAME, Likeness, Text, compare, likeness
from engramfs.search.query import Draft, Drafts, Found, Kind, Match, Place, Query

if TYPE_CHECKING:
    from engramfs.search.searching import Search
    from engramfs.storage.protocol import Engine

__all__ = [
    "RELATED",
    "SAME",
    "Draft",
    "Drafts",
    "EmbedderSettings",
    "Found",
    "Kind",
    "Likeness",
    "Match",
    "Place",
    "Query",
    "Text",
    "compare",
    "likeness",
    "opened",
]


def opened(state: str, engine: "Engine", settings: EmbedderSettings | None = None) -> "Search":
    """Search over `engine`, the log of the state directory `state`. Raises `Unavailable` without extra."""
    try:
        from engramfs.search.searching import Search
    except ModuleNotFoundError as error:
        raise Unavailable(f"search needs {error.name}; pip install 'engramfs[search]'") from error
    except ImportError as error:
        why = " ".join(str(error).split())
        raise Unavailable(
            f"search cannot load {error.name} ({why}); pip install --force-reinstall tantivy pyyaml mends it"
        ) from error
    return Search(state, engine, settings or EmbedderSettings())
