"""What exceptions of the keyword index mean.

The library raises ValueError for nearly everything, and a damaged file can make it panic, which Python sees
as a BaseException of a class that cannot be imported.
"""

import contextlib
from collections.abc import Iterator

from engramfs.errors import Full, StorageError, Unavailable

_PANIC = "PanicException"
_NO_SPACE = ("No space left", "os error 28")


class IndexDamaged(StorageError):
    """The index cannot be read or written as it is; made anew, it can."""


class IndexUnwritable(Unavailable):
    """There is no index, and this process cannot make one."""


@contextlib.contextmanager
def translated(directory: str) -> Iterator[None]:
    """Raises `IndexDamaged`, and `Full` when the disk is."""
    try:
        yield
    except (ValueError, OSError) as error:
        if any(text in str(error) for text in _NO_SPACE):
            raise Full(
                f"no space left for the search index in {directory}; free some, the next search goes on"
            ) from error
        raise _damaged(directory, error) from error
    except BaseException as error:
        if type(error).__name__ != _PANIC:
            raise
        raise _damaged(directory, error) from error


def _damaged(directory: str, error: BaseException) -> IndexDamaged:
    return IndexDamaged(
        f"the search index in {directory} is damaged ({error}); remove the directory, it is made anew"
    )
