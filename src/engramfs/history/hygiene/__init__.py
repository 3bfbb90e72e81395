"""Writes that look like a secret: found, flagged in their version, refused where a store says so.

readable     what of a content can be read as text
candidates   where a text may hold one, found cheaply
detectors    what the library `detect-secrets` (extra `[secrets]`) says of such a place
scanning     the contents of a commit, or of a version
refusing     of a store with `secrets = "refuse"`: what may not be written
newest       the newest versions that were flagged, for `status`

The flag is in the header of the version. Where the secret is, is kept nowhere: it is looked for again when
somebody asks, so a redaction leaves nothing behind.
"""

from engramfs.history.hygiene.detectors import MISSING, is_available, require
from engramfs.history.hygiene.newest import Flagged, newest, note
from engramfs.history.hygiene.refusing import Objection, check, objection
from engramfs.history.hygiene.scanning import (
    FLAG,
    LOOKED_AT,
    FoundAt,
    files_with_secrets,
    find,
    of_version,
    said_of,
)

__all__ = [
    "FLAG",
    "LOOKED_AT",
    "MISSING",
    "Flagged",
    "FoundAt",
    "Objection",
    "check",
    "files_with_secrets",
    "find",
    "is_available",
    "newest",
    "note",
    "objection",
    "of_version",
    "require",
    "said_of",
]
