"""Who made a commit and when, as its author's and its committer's line say it, and as people read it.

A date is one of RFC 3339 with the offset of where it was, `2026-01-31T12:00:00+02:00`. Histories hold dates
that no calendar has; those are as git writes them, `@1700000000 +9900`.
"""

import re
from datetime import UTC, datetime, timedelta

import msgspec

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LINE = re.compile(rb"(?:(.*) )?<([^<>]*)> (\d+) ([+-]\d+)", re.DOTALL)
_WHO = re.compile(r"(?:([^<>\n\0]*) )?<([^<>\n\0]*)>")
_DATE = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)([+-]\d\d):(\d\d)", re.ASCII)
_BARE_DATE = re.compile(r"@(\d{1,19}) ([+-]\d+)", re.ASCII)
_LATEST = 253_402_214_400  # seconds: the last day of the year 9999, which no offset carries over its end
_FURTHEST = 1400  # hours and minutes; git takes no offset beyond it


class Signature(msgspec.Struct, frozen=True):
    """`seconds` are since 1970, and `offset` is that of the clock: `+0200`, two digits for the hours."""

    name: bytes
    mail: bytes
    seconds: int
    offset: str = "+0000"

    @property
    def who(self) -> str:
        """`Ann Smith <ann@example.org>`."""
        name, mail = (part.decode("utf-8", "replace") for part in (self.name, self.mail))
        return f"{name} <{mail}>" if name else f"<{mail}>"

    @property
    def date(self) -> str:
        shift = _shift(self.offset)
        if shift is None or self.seconds >= _LATEST:
            return f"@{self.seconds} {self.offset}"
        moment = _EPOCH + timedelta(seconds=self.seconds) + shift
        return f"{moment:%Y-%m-%dT%H:%M:%S}{self.offset[:3]}:{self.offset[3:]}"

    def line(self) -> bytes:
        """As fast-import reads it. An offset that it refuses becomes none."""
        offset = self.offset if int(self.offset[1:]) <= _FURTHEST else "+0000"
        name = self.name + b" " if self.name else b""
        return b"%s<%s> %d %s" % (name, self.mail, min(self.seconds, 1 << 62), offset.encode())


def read(line: bytes) -> Signature | None:
    """What a commit says, or None when that is no such line."""
    match = _LINE.fullmatch(line)
    if match is None:
        return None
    return Signature(match[1] or b"", match[2], int(match[3]), match[4].decode())


def said(who: str, date: str) -> Signature | None:
    """What `who` and `date` of a signature say, or None when they are not those of one."""
    person, moment = _WHO.fullmatch(who), _moment(date)
    if person is None or moment is None:
        return None
    return Signature((person[1] or "").encode(), person[2].encode(), *moment)


def _moment(date: str) -> tuple[int, str] | None:
    if match := _BARE_DATE.fullmatch(date):
        return int(match[1]), match[2]
    match = _DATE.fullmatch(date)
    shift = _shift(match[2] + match[3]) if match is not None else None
    if match is None or shift is None:
        return None
    try:
        since = datetime.fromisoformat(match[1] + "+00:00") - shift - _EPOCH
    except (ValueError, OverflowError):
        return None
    seconds = since.days * 86_400 + since.seconds
    return (seconds, match[2] + match[3]) if seconds >= 0 else None


def _shift(offset: str) -> timedelta | None:
    """None for what is no offset of a clock."""
    hours, minutes = int(offset[1:3] or "99"), int(offset[3:] or "99")
    if len(offset) != 5 or hours > 23 or minutes > 59:
        return None
    shift = timedelta(hours=hours, minutes=minutes)
    return -shift if offset[0] == "-" else shift
