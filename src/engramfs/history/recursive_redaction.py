"""Taking everything below a directory out of the history, and the names of the directories with it.

First it is seen that nothing stands against it, then one redaction follows the other, the deepest name first.
So when a program writes meanwhile, part may have been done; doing it again does the rest.
"""

from engramfs.errors import Redacted, Refused
from engramfs.history import catalog
from engramfs.history.directory_redaction import redact_directory
from engramfs.history.directory_target import is_redacted_name, require_directory_past
from engramfs.history.redaction import redact
from engramfs.history.redaction_rows import Removed
from engramfs.history.redaction_target import target
from engramfs.history.repository import Repository
from engramfs.history.tree import tree_at, walk
from engramfs.model.author import Author
from engramfs.model.entry import Kind
from engramfs.model.names import printable
from engramfs.storage.protocol import Reader


def redact_recursively(
    repository: Repository, name: str, number: int, path: bytes, author: Author, reason: str, now: int
) -> list[Removed]:
    """Take what is at and below `path`, a directory in version `number`, out of the store `name`.

    What is redacted already is passed over. Raises what `redact` and `redact_directory` raise, before
    anything is done, and `Redacted` when there is nothing left.
    """
    with repository.engine.reading() as reader:
        files, directories = _below(reader, name, number, path)
    done = []
    for one in files:
        try:
            done.append(redact(repository, name, number, one, author, reason, now))
        except Redacted:
            continue  # by another of its names, or before
    names = reversed(directories)
    done += [redact_directory(repository, name, number, one, author, reason, now) for one in names]
    if not done:
        raise Redacted(f"everything at and below {printable(path)} in {name}@{number} was redacted before")
    return done


def _below(reader: Reader, name: str, number: int, path: bytes) -> tuple[list[bytes], list[bytes]]:
    """The files and the names of directories that are not redacted yet, those above first."""
    store = catalog.named(reader, name)
    entries = list(walk(tree_at(reader, store, number), path))
    files = [one for one, entry in entries if entry.kind is not Kind.DIRECTORY and not entry.is_redacted]
    directories = [
        one
        for one, entry in entries
        if entry.kind is Kind.DIRECTORY and not is_redacted_name(one.rpartition(b"/")[2], entry)
    ]
    held = [one for one in files if target(reader, store, number, one).is_at_head]
    if held:
        more = f" and {len(held) - 1:,} more" if len(held) > 1 else ""
        raise Refused(
            f"the head of {name} still has what {printable(held[0])}{more} held; change or remove it first, "
            "so that there is a newer version, then redact the old one"
        )
    for one in directories:
        require_directory_past(reader, store, number, one)
    return files, directories
