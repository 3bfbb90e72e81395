"""Where a text may hold a secret: every place where a detector may match, at a few microseconds for 4 KiB.

Most secrets are, or stand in, twenty bytes or more without a blank. Such words are found by mapping all their
bytes to one and searching for a run of it, which skips through ordinary text. What is left is looked for only
where a text has a rare byte of it at all (see `is_ordinary`).

Some detectors would take time with the square of a line. They are shown what they may match, and no more.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from engramfs.history.hygiene.detectors import Alone

_WORD = bytes(
    ord("x") if chr(byte).isascii() and (chr(byte).isalnum() or chr(byte) in "_-.+/=:\\") else ord(" ")
    for byte in range(256)
)
_LONG = b"x" * 20  # an access key of AWS; the others that are looked for in words are longer
_IN_WORDS = re.compile(
    rb"(?:A3T|ABIA|ACCA|AKIA|ASIA)[A-Z0-9]{16}|gh[pousr]_|github_pat_|gl[a-z]{2,6}-[\w-]{20}|GR1348941"
    rb"|[rs]k_live_|sk-(?:ant|proj|svcacct|admin)-|AIza|SG\.|pypi-AgE|sq0csp-|AccountKey="
    rb"|(?i:https://hooks\.slack\.com/)"
)
_AWS = re.compile(rb"aws[^\n]{0,80}?(?:key|pw|pass|token)[^\n]{0,90}?[0-9a-z/+]{40}")  # in lower case
_AWS_SECRET = 40  # bytes
_SLACK = b"xox"  # in lower case; what follows may be short
_FOLDED = ("\u017f".encode(), "\u212a".encode())  # s and k to a detector that does not look at case
_AROUND = 200  # bytes from such a letter to where a match begins
_PARTS_OF_TOKEN = re.compile(rb"eyJ[\w=-]+(\.[\w=-]+)?")
_URL = re.compile(rb"://[^\s/?#@]+:[^\s/?#@]+@")
_OPENAI, _OPENAI_REST = b"T3BlbkFJ", 20  # bytes of what follows
_NPM, _NPM_TOKEN = b"/:_authToken=", 200  # bytes of what follows
_KEYS = _PRIVATE_KEY, _PUTTY_KEY = b"PRIVATE KEY", b"PuTTY-User-Key-File-2"
_KEY_BEFORE, _KEY_AFTER = 40, 30  # bytes of "BEGIN … PRIVATE KEY BLOCK"


class Span(NamedTuple):
    """Offsets in one line, of what is shown to one detector."""

    start: int
    end: int
    detector: Alone


def is_ordinary(text: bytes) -> bool:
    """Whether there is neither a span nor a candidate, of a text without a NUL. Most texts are so.

    A file is not closed before this is known, so it is one function with few calls of others, and looks for a
    rare byte of what it looks for first. What is added to `candidates` or `spans` is to be asked for here.
    """
    marks = text.translate(_WORD)
    at = marks.find(_LONG)
    while at >= 0:
        end = marks.find(b" ", at)
        word = text[at:end] if end >= 0 else text[at:]
        if (_may_match(word) and _IN_WORDS.search(word)) or (
            len(word) >= _AWS_SECRET and b"aws" in text.lower()
        ):
            return False
        at = marks.find(_LONG, at + len(word))
    return not (
        not text.isascii()
        or (b"-" in text and _SLACK in text.lower())
        or (b"J" in text and b"eyJ" in text)
        or (b"@" in text and b"://" in text)
        or (b"_" in text and _NPM in text)
        or (b"3" in text and _OPENAI in text)
        or (b"V" in text and _PRIVATE_KEY in text)
        or (b"Y" in text and _PUTTY_KEY in text)
    )


def candidates(text: bytes) -> set[int]:
    """Where what all other detectors match may begin."""
    words = _long_words(text)
    found = {place for start, end in words for place in _in_word(text[start:end], start)}
    if any([end - start >= _AWS_SECRET for start, end in words]):  # noqa: C419 - faster than a generator
        found.update(_of_aws(text.lower()))
    if b"-" in text:
        found.update(_each(text.lower(), _SLACK))
    if not text.isascii():
        letters = [at for letter in _FOLDED for at in _each(text, letter)]
        found.update(max(_line(text, at), at - _AROUND) for at in letters)
    return found


def spans(text: bytes) -> Iterator[Span]:
    """What may be matched by the detectors that are shown no more."""
    yield from _tokens_of_json(text)
    if b"@" in text and b"://" in text:
        yield from (Span(*match.span(), "Basic Auth Credentials") for match in _URL.finditer(text))
    yield from _of_npm(text)
    yield from _of_openai(text)
    for key in _KEYS:
        for at in _each(text, key):
            yield Span(max(_line(text, at), at - _KEY_BEFORE), at + _KEY_AFTER, "Private Key")


def _long_words(text: bytes) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    marks = text.translate(_WORD)
    at = marks.find(_LONG)
    while at >= 0:
        end = marks.find(b" ", at)
        end = end if end >= 0 else len(text)
        found.append((at, end))
        at = marks.find(_LONG, end)
    return found


def _in_word(word: bytes, start: int) -> Iterator[int]:
    if _may_match(word):
        for match in _IN_WORDS.finditer(word):
            yield start + match.start()


def _may_match(word: bytes) -> bool:
    """Not as in a digest: what is looked for in words has a capital letter or a sign."""
    return word != word.lower() or b"_" in word or b"-" in word or b"slack" in word


def _of_aws(lowered: bytes) -> Iterator[int]:
    if b"aws" in lowered:
        for match in _AWS.finditer(lowered):
            yield match.start()


def _tokens_of_json(text: bytes) -> Iterator[Span]:
    at = text.find(b"eyJ")
    while at >= 0:
        match = _PARTS_OF_TOKEN.match(text, at)
        end = match.end() if match is not None else at + 3
        if match is not None and match[1]:
            yield Span(at, end, "JSON Web Token")
        at = text.find(b"eyJ", end)


def _of_npm(text: bytes) -> Iterator[Span]:
    """What is matched begins at some `//` before, with something between."""
    for at in _each(text, _NPM):
        start = text.rfind(b"//", _line(text, at), at - 1)
        if start >= 0:
            yield Span(start, at + len(_NPM) + _NPM_TOKEN, "NPM tokens")


def _of_openai(text: bytes) -> Iterator[Span]:
    for at in _each(text, _OPENAI):
        start = text.rfind(b"sk-", _line(text, at), at)
        if start >= 0:
            yield Span(start, at + len(_OPENAI) + _OPENAI_REST, "OpenAI Token")


def _each(text: bytes, literal: bytes) -> Iterator[int]:
    at = text.find(literal)
    while at >= 0:
        yield at
        at = text.find(literal, at + 1)


def _line(text: bytes, at: int) -> int:
    """Where the line begins that `at` is in."""
    return text.rfind(b"\n", 0, at) + 1
