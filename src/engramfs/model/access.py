"""What an attachment may do with its store."""

from enum import StrEnum


class Access(StrEnum):
    """`ask` (writes wait for a person's approval) is named in the design and not served yet."""

    READ_ONLY = "read_only"
    READ_WRITE = "read_write"
