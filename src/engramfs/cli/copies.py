"""Where a copy of stores may be put: elsewhere than they are."""

import os

from engramfs.cli.invocation import Invocation
from engramfs.errors import UsageError


def outside_state(invocation: Invocation, directory: str) -> str:
    """`directory`, absolute, if it is not in the state directory. Raises `UsageError`."""
    directory, state = os.path.abspath(directory), invocation.locations.state
    if any(_is_same(above, state) for above in _way_to(directory)):
        raise UsageError(
            f"{directory} is in the state directory {state}, which only engramfs writes to; "
            "name a directory elsewhere, best on another disk"
        )
    return directory


def outside_stores(invocation: Invocation, directory: str) -> str:
    """`directory`, absolute, if it is neither in the state directory nor in a mounted store.

    Raises `UsageError`.
    """
    directory = outside_state(invocation, directory)
    for above in _way_to(directory):
        if store := _store_at(above):
            raise UsageError(
                f"{directory} is in a mount of the store {store}, which would hold a copy of itself; "
                "name a directory elsewhere, best on another disk"
            )
    return directory


def _way_to(directory: str) -> list[str]:
    """The directory, as far as it exists, and those above it, as the kernel finds them."""
    directory = os.path.realpath(directory)
    way = [directory]
    while directory != os.path.dirname(directory):
        directory = os.path.dirname(directory)
        way.append(directory)
    return way


def _is_same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def _store_at(directory: str) -> str:
    """The store that a directory of a mount shows; empty where it is in none."""
    try:
        return os.fsdecode(os.getxattr(directory, "user.engramfs.store"))
    except OSError:
        return ""
