"""Text that is gone goes from the index's files too.

A file that is removed or replaced is found no more at once, but its terms stay in the file of the segment
that holds them. So the index is written anew, without them, into another generation: whenever something was
redacted, collected or deleted, and otherwise when much has been replaced.
"""

import msgspec

from engramfs.search.failures import IndexDamaged
from engramfs.search.index_directory import IndexDirectory
from engramfs.search.index_state import IndexState
from engramfs.search.keyword_index import KeywordIndex
from engramfs.search.log_changes import is_of_this_log, log_changes
from engramfs.search.snapshot import Snapshot
from engramfs.storage.protocol import Reader

_SHARE = 0.25  # of the passages; more that are replaced are worth a rewrite
_FEW = 200  # passages; fewer are not


def must_rewrite(state: IndexState, count: int) -> bool:
    """Whether the files hold what has to go, given how many passages there are."""
    return state.must_forget or state.replaced > _FEW + _SHARE * count


def may_hold_what_is_gone(reader: Reader, directory: IndexDirectory) -> bool:
    """Whether the files may hold what was redacted, collected or deleted since the index followed the log."""
    generation = directory.current()
    if generation is None:
        return True  # of another format
    try:
        state = KeywordIndex(directory.keywords(generation)).snapshot().state()
    except IndexDamaged:
        return True
    if state is None or not is_of_this_log(reader, state):
        return True
    return log_changes(reader, state).state.must_forget


def rewrite(snapshot: Snapshot, state: IndexState, keywords: str) -> list[int]:
    """Write what is there into a new index in the directory `keywords`; the keys of the vectors it needs."""
    needed: list[int] = []
    with KeywordIndex(keywords, create=True).writing() as writer:
        for row, terms, labels in snapshot.everything():
            writer.add(row, terms, labels)
            needed.append(row.vector)
        writer.commit(msgspec.structs.replace(state, replaced=0, must_forget=False))
    return needed
