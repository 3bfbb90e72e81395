"""A command that a message gives does what it says, whatever an agent calls its files."""

import os
import subprocess

import pytest

from engramfs.model.shell_words import path_word, shell_command, shell_word

NAMES = [
    b"plain",
    b"a b",
    b"it's",
    b"nl\nx",
    b"tab\tx'\\",
    b"\xff\xfe7",
    "zero\u200bwidth".encode(),
    b"$(id)\x1b[31m",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_shell_reads_the_very_bytes(name: bytes) -> None:
    word = shell_word(os.fsdecode(name))
    assert word.isprintable()
    said = subprocess.run(["bash", "-c", f"printf %s {word}"], capture_output=True, check=True)
    assert said.stdout == name


def test_only_what_needs_it_is_quoted() -> None:
    assert (
        shell_command("engramfs", "redact", "memory/a/b", "2", "x y") == "engramfs redact memory/a/b 2 'x y'"
    )


def test_a_path_that_begins_like_an_option_is_none() -> None:
    assert (path_word(b"-rf"), path_word(b"a/-rf")) == ("/-rf", "a/-rf")
