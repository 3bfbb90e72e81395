"""What is read of a file, however it was edited."""

import pytest

from engramfs.search.document import LARGEST, read_document

RECORD = b"records/preference/a1.md"


def test_a_record_says_what_it_is_in_its_front_matter() -> None:
    content = (
        b"---\nid: a1\ncategory: taste\ntags: [tea, 2025]\nagentId: digest\nsessionId: s1\n"
        b"metadata: {source: mail, history: [{value: coffee, updatedAt: 2024-01-01}]}\n"
        b"created: 2025-01-02T03:04:05Z\nupdated: 2025-01-03T00:00:00+01:00\n---\nTea.\n"
    )
    document = read_document(RECORD, content)
    assert document is not None
    assert (document.body, document.first_line) == ("Tea.", 11)
    assert (document.category, document.agent, document.session) == ("preference", "digest", "s1")
    assert set(document.labels) == {"preference", "a1", "tea", "2025", "mail"}
    assert document.created == 1_735_787_045 * 10**9
    assert document.updated == 1_735_858_800 * 10**9


@pytest.mark.parametrize(
    "content",
    [
        b"Tea.",
        b"---\nTea.",
        b"---\n[unclosed\n---\nTea.",
        b"---\n- a list\n---\nTea.",
        b"---\ncategory: {a: b}\ntags: 7\ncreated: soon\nmetadata: none\n---\nTea.",
        b"---\n: : :\n\t\n---\nTea.",
        b"\xef\xbb\xbf---\r\nid: a1\r\n---\r\nTea.",
        b"---\ncreated: 99999-99-99\nupdated: 2025-02-30\n---\nTea.",
        b"---\na: &a [*a]\n---\nTea.",
        b"---\nid: &a a1\nmetadata: {of: *a}\n---\nTea.",
        b"---\nmetadata: {a: " + b"[" * 40 + b"]" * 40 + b"}\n---\nTea.",
        b"---\nmetadata: {a: !!binary aGk=}\n---\nTea.",
        b"---\nmetadata: {? [a] : b}\n---\nTea.",
    ],
)
def test_front_matter_that_cannot_be_read_hides_nothing(content: bytes) -> None:
    document = read_document(RECORD, content)
    assert document is not None
    assert "Tea." in document.body
    assert document.category == "preference"
    assert document.created is document.updated is None


@pytest.mark.parametrize(
    "content", [b"\x7fELF\0\0", b"\xff\xfe" * 200, b"x" * (LARGEST + 1)], ids=["NUL", "no UTF-8", "too large"]
)
def test_what_is_no_text_is_not_read(content: bytes) -> None:
    assert read_document(b"f", content) is None


def test_another_file_is_its_text_and_its_name() -> None:
    document = read_document(b"notes/\xff/tea.md", b"---\ntitle: Tea\n---\nGreen.")
    assert document is not None
    assert document.body == "---\ntitle: Tea\n---\nGreen."
    assert document.labels[0] == "notes"
    assert document.category is None
