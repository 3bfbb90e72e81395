"""Writes that look like a secret: found, flagged in their version, refused where a store says so.

readable     what of a content can be read as text
candidates   where a text may hold one, found cheaply
detectors    what the library `detect-secrets` (extra `[secrets]`) says of such a place
scanning     what looks like one in a text or a name
written      all that a commit or a version writes
refusing     of a store with `secrets = "refuse"`: what may not be written
newest       the newest versions that were flagged, for `status`

Looked at are contents (their first MiB, binary files too), names of files, directories and links, where
symbolic links lead, extended attributes, and messages. Not looked at are what has to be decoded first (see
`readable`), the names and descriptions of stores, and the reason that is given with a decision or redaction.

The flag is in the header of the version. Where the secret is, is kept nowhere: it is looked for again when
somebody asks, so a redaction leaves nothing behind.
"""

from engramfs.history.hygiene.detectors import MISSING, is_available, require
from engramfs.history.hygiene.newest import Flagged, newest, note
from engramfs.history.hygiene.refusing import (
    Objection,
    attribute_objection,
    check,
    check_message,
    check_name,
    name_objection,
    objection,
)
from engramfs.history.hygiene.scanning import LOOKED_AT, find
from engramfs.history.hygiene.written import FLAG, FoundAt, of_commit, of_version, said_of

__all__ = [
    "FLAG",
    "LOOKED_AT",
    "MISSING",
    "Flagged",
    "FoundAt",
    "Objection",
    "attribute_objection",
    "check",
    "check_message",
    "check_name",
    "find",
    "is_available",
    "name_objection",
    "newest",
    "note",
    "objection",
    "of_commit",
    "of_version",
    "require",
    "said_of",
]
