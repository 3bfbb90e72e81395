"""The same histories as git repositories, made by `git fast-import`."""

import subprocess
from collections.abc import Iterable, Iterator

from tests.bench.stores import changed_note, edited_versions, wide_notes


def with_versions(repository: str, versions: int, lines: int) -> None:
    """One file, `file.md`, with as many commits as `stores.with_edited_file` makes versions."""
    _import(repository, ([(b"file.md", content)] for content in edited_versions(versions, lines)))


def with_few_changes(repository: str, directories: int, files: int, changed: int) -> None:
    """As `stores.with_few_changes`: two commits of very many files, that differ in few."""
    notes = wide_notes(directories, files)
    _import(repository, [notes, [changed_note(path, content) for path, content in notes[:changed]]])


def _import(repository: str, commits: Iterable[list[tuple[bytes, bytes]]]) -> None:
    subprocess.run(["git", "init", "-q", repository], check=True, timeout=30)
    process = subprocess.Popen(["git", "-C", repository, "fast-import", "--quiet"], stdin=subprocess.PIPE)
    assert process.stdin is not None
    with process.stdin as stream:
        for number, files in enumerate(commits):
            stream.writelines(_commit(number, files))
    if process.wait(120):
        raise RuntimeError("git fast-import failed")
    subprocess.run(["git", "-C", repository, "reset", "-q", "--hard", "master"], check=True, timeout=120)


def _commit(number: int, files: list[tuple[bytes, bytes]]) -> Iterator[bytes]:
    yield b"commit refs/heads/master\ncommitter bench <bench@example.org> %d +0000\n" % (
        1_700_000_000 + number
    )
    yield b"data 0\n"
    for path, content in files:
        yield b"M 100644 inline %s\ndata %d\n%s\n" % (path, len(content), content)
    yield b"\n"
