"""Moments, as nanoseconds since 1970 and as people write them: RFC 3339, in UTC."""

import re
from datetime import UTC, datetime, timedelta

from engramfs.errors import UsageError

_SECOND = 10**9
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOMENT = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?)(?:\.(\d{1,9})\d*)?)?(Z|[+-]\d\d:\d\d)?", re.ASCII
)


def format_time(time: int) -> str:
    """`2025-11-30T09:05:01.123456789Z`: with every digit, so the text names the moment that it came from."""
    seconds, nanoseconds = divmod(time, _SECOND)
    moment = _EPOCH + timedelta(seconds=seconds)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{nanoseconds:09}Z"


def parse_time(text: str) -> int:
    """Nanoseconds since 1970 of an RFC 3339 moment; without an offset it is UTC, without a time midnight.

    Raises `UsageError`.
    """
    match = _MOMENT.fullmatch(text.strip().upper())
    try:
        if match is None:
            raise ValueError(text)
        day, clock, fraction, offset = match.groups()
        moment = datetime.fromisoformat(f"{day}T{clock or '00:00'}{offset or 'Z'}")
    except ValueError:
        raise UsageError(f"{text!r} is not a time; write it like 2025-11-30T09:05:01Z") from None
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * _SECOND + int((fraction or "").ljust(9, "0"))
