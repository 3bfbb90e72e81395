"""Why a directory that is to be written cannot be made, when the system says that it is not there."""

import os

from engramfs.errors import EngramError, NotFound, Unavailable
from engramfs.model.names import printable


def unmade(directory: bytes) -> EngramError:
    """What to raise when making `directory` failed with ENOENT; so it does in a place like /proc, too."""
    above = os.path.dirname(os.path.abspath(directory))
    if os.path.isdir(above):
        return Unavailable(f"no directory can be made in {printable(above)}; name another place")
    return NotFound(f"there is no directory {printable(above)}; create it first")
