"""What an attachment may do with its store."""

from enum import StrEnum


class Access(StrEnum):
    READ_ONLY = "read_only"
    READ_WRITE = "read_write"
    ASK = "ask"  # writes are shown to their session alone, and wait for a person's approval
