"""Where a text may hold a secret: a superset, found at a few microseconds for each 4 KiB.

Most secrets are one long word that begins in a way of its own, or stands behind a name. Long words are found
by mapping all bytes of words to one byte and searching for a run of it, which skips through ordinary text.
"""

import re

_WORD = bytes(
    ord("x") if chr(byte).isascii() and (chr(byte).isalnum() or chr(byte) in "_-.") else ord(" ")
    for byte in range(256)
)
_LONG = b"x" * 16  # what AWS calls a secret has 40, of which a few may be no letters
_BEGINS = re.compile(  # after what may be left of an escaped line break
    rb"[nrt]?(?:A3T|ABIA|ACCA|AKIA|ASIA|gh[pousr]_|github_pat_|gl[a-z]{2,6}-|GR1348941|xox[abpors]-"
    rb"|[rs]k_live_|eyJ|sk-|AIza|SG\.|pypi-AgE|sq0csp-|npm_|PuTTY-)"
)
_NAMES = (b"aws", b"accountkey=", b"_authtoken=", b"hooks.slack.com/")  # in lower case
_NAMED = 100  # bytes before a word in which its name is
_URL = re.compile(rb"://[^\s/?#@]+:[^\s/?#@]+@")
_KEY = b"PRIVATE KEY"


def candidates(text: bytes) -> set[int]:
    """Offsets at or shortly before which a secret may begin."""
    found: set[int] = set()
    marks = text.translate(_WORD)
    at = marks.find(_LONG)
    while at >= 0:
        if _BEGINS.match(text, at) or _is_named(text, at):
            found.add(at)
        end = marks.find(b" ", at)
        at = marks.find(_LONG, end) if end >= 0 else -1
    if b"@" in text and b"://" in text:
        found.update(each.start() for each in _URL.finditer(text))
    at = text.find(_KEY)
    while at >= 0:
        found.add(at)
        at = text.find(_KEY, at + 1)
    return found


def _is_named(text: bytes, at: int) -> bool:
    before = text[max(0, at - _NAMED) : at].lower()
    return any([name in before for name in _NAMES])  # noqa: C419 - a generator takes three times as long
