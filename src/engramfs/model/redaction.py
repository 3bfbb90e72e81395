"""What was taken out of a version."""

import msgspec

from engramfs.model.author import Author


class Redaction(msgspec.Struct, frozen=True, array_like=True):
    """Who took content out of a version, when and why. Path and digest are gone, so they are not here."""

    time: int  # nanoseconds since 1970
    author: Author
    reason: str
    changes: int  # how many changes of the version lost path and content
