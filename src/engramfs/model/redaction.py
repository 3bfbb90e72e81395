"""What was taken out of a version."""

import msgspec

from engramfs.model.author import Author


class Redaction(msgspec.Struct, frozen=True, array_like=True):
    """Who took something out of a version, when and why. What that was is gone, so it is not here.

    A version that came after one from which a content was taken names it as what was there before. It has
    a redaction too, though none of its own content went.
    """

    time: int  # nanoseconds since 1970
    author: Author
    reason: str
    changes: int  # how many changes of the version lost their path, and mostly their content
    remaining: bytes = b""  # digest of the changes as this left them, in the place of the header's
    header: bytes = b""  # digest of the header as this left it, when the message went
