"""Who made a commit and when, as text and back."""

import pytest

from engramfs.history.git.signature import Signature, read, said


@pytest.mark.parametrize(
    ("line", "who", "date"),
    [
        (
            b"Ann Smith <ann@example.org> 1700000000 +0200",
            "Ann Smith <ann@example.org>",
            "2023-11-15T00:13:20+02:00",
        ),
        (b"Ann <a@b> 0 -0930", "Ann <a@b>", "1969-12-31T14:30:00-09:30"),
        (b"gr\xc3\xbcn <> 1700000000 -0000", "grün <>", "2023-11-14T22:13:20-00:00"),
        (b"<nobody> 1 +0000", "<nobody>", "1970-01-01T00:00:01+00:00"),
        (b"a <b> 1700000000 +051800", "a <b>", "@1700000000 +051800"),
        (b"a <b> 1700000000 +9900", "a <b>", "@1700000000 +9900"),
        (b"a <b> 1700000000 +1", "a <b>", "@1700000000 +1"),
        (b"a <b> 253402300799 +0000", "a <b>", "@253402300799 +0000"),
        (b"a <b> 9999999999999999 +0000", "a <b>", "@9999999999999999 +0000"),
    ],
)
def test_what_people_read_of_it_says_all_of_it(line: bytes, who: str, date: str) -> None:
    signature = read(line)
    assert signature is not None
    assert (signature.who, signature.date) == (who, date)
    assert said(who, date) == signature


@pytest.mark.parametrize("offset", ["+051800", "+9900", "+1401"])
def test_an_offset_that_git_does_not_take_is_not_given_to_it(offset: str) -> None:
    assert Signature(b"a", b"b", 7, offset).line() == b"a <b> 7 +0000"


@pytest.mark.parametrize(
    ("who", "date"),
    [
        ("Ann", "2023-11-15T00:13:20+02:00"),
        ("Ann <a@b>\n", "2023-11-15T00:13:20+02:00"),
        ("A<nn <a@b>", "2023-11-15T00:13:20+02:00"),
        ("Ann <a@b>", "2023-13-15T00:13:20+02:00"),
        ("Ann <a@b>", "2023-11-15T00:13:20+99:00"),
        ("Ann <a@b>", "2023-11-15T00:13:20"),
        ("Ann <a@b>", "1969-12-31T00:00:00+00:00"),
        ("Ann <a@b>", "yesterday"),
    ],
)
def test_what_is_no_signature_is_none(who: str, date: str) -> None:
    assert said(who, date) is None


@pytest.mark.parametrize("line", [b"Ann 1 +0000", b"Ann <a> +0000", b"Ann <a> -1 +0000", b"Ann <a> 1", b""])
def test_what_no_commit_says_is_none(line: bytes) -> None:
    assert read(line) is None
