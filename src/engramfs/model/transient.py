"""Names of editors' scratch files. They live in their view and never enter the log, unless renamed."""

import fnmatch
import re

DEFAULT_PATTERNS = (".*.sw?", "4913", "*~", ".#*", ".tmp-*", ".fuse_hidden*")


class TransientNames:
    """A compiled set of shell patterns over single names."""

    def __init__(self, patterns: tuple[str, ...] = DEFAULT_PATTERNS) -> None:
        expressions = [fnmatch.translate(pattern) for pattern in patterns]
        self._match = re.compile("|".join(expressions).encode() or b"(?!)").match

    def __contains__(self, name: bytes) -> bool:
        return self._match(name) is not None
