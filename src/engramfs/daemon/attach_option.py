"""`STORE[@N]=PATH:ACCESS`: an attachment that somebody asks for beside the agent's, or instead of one.

A store is shown live, `STORE@N` at that version. Nothing here makes stores, and nobody's memory can be
asked for but the session's own: that is what scoping decides.
"""

from collections.abc import Callable, Sequence

import msgspec

from engramfs.daemon.attachments import Attachment
from engramfs.daemon.session import PARENTS
from engramfs.errors import Refused, UsageError
from engramfs.model.access import Access
from engramfs.model.names import kind_of
from engramfs.model.reference import Reference, parse_reference

replace = msgspec.structs.replace
_FORM = "write STORE[@N]=PATH:ACCESS, like contexts/handbook@3=/mnt/context/handbook:read_only"


def parse(text: str, exists: Callable[[str], bool]) -> Attachment:
    """What `text` asks for; `exists` says which stores there are. Raises `UsageError`, `InvalidName`."""
    named, _, rest = text.partition("=/")
    path, colon, access = rest.rpartition(":")
    if not named or not colon:
        raise UsageError(f"cannot understand the attachment {text!r}; {_FORM}")
    reference = parse_reference(named, exists)
    if reference.path is not None:
        raise UsageError(f"{named!r} names a file; attach a whole store")
    if access not in (each.value for each in Access):
        known = " or ".join(Access)
        raise UsageError(f"access {access!r} in {text!r} is not known; write {known}")
    return _attachment(text, reference, _plain_path("/" + path), Access(access))


def _attachment(text: str, reference: Reference, path: str, access: Access) -> Attachment:
    pinned = reference.version is not None
    if pinned and access is not Access.READ_ONLY:
        raise UsageError(f"{text!r} would write to an old version; leave @{reference.version} out")
    return Attachment(reference.store, path, access, live=not pinned, version=reference.version)


def _plain_path(path: str) -> str:
    parts = path.strip("/").split("/")
    if any(part in ("", ".", "..") or not part.isprintable() for part in parts):
        raise UsageError(f"{path!r} is no place to attach to; give an absolute path without '.' and '..'")
    return "/" + "/".join(parts)


def combined(own: Sequence[Attachment], asked: Sequence[Attachment]) -> list[Attachment]:
    """The agent's attachments with those asked for beside them, or instead of those at the same path.

    Raises `Refused` for the memory of somebody else, `UsageError` for places that get in each other's way.
    """
    memories = {each.store: each for each in own if each.owner is not None}
    by_path = {each.path: each for each in own}
    for each in asked:
        if kind_of(each.store) == "memories" and each.store not in memories:
            raise Refused(
                f"store {each.store} is not this session's memory; memories are attached for their owner "
                "alone, see --actor"
            )
        mine = memories.get(each.store)
        by_path[each.path] = replace(each, owner=mine.owner, create=True) if mine is not None else each
    if len({each.path for each in asked}) < len(asked):
        raise UsageError("two attachments are asked for at the same path; choose another for one of them")
    found = [by_path[path] for path in sorted(by_path)]
    _check_apart(found)
    return found


def _check_apart(found: Sequence[Attachment]) -> None:
    for each in found:
        if any(_is_at_or_above(each.path, parent) for parent in PARENTS):
            raise UsageError(f"{each.path} holds mount points itself; choose a place below it")
        for other in found:
            if each is not other and _is_at_or_above(each.path, other.path):
                raise UsageError(f"{other.path} would lie inside of {each.path}; choose another place")


def _is_at_or_above(path: str, other: str) -> bool:
    return other == path or other.startswith(path + "/")
