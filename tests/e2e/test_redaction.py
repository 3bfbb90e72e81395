"""A secret that an agent wrote through a mount is taken out: of the history, and of what the kernel keeps."""

import errno
import json
import os
from pathlib import Path

import pytest

from ..harness.command import Command
from ..harness.daemon import Place

SECRET = b"the password is hunter2\n"
GONE = {errno.ENODATA, errno.ENOENT, errno.ESTALE}


def redact(place: Place, number: int, path: str, *more: str) -> dict[str, object]:
    document: dict[str, object] = place.daemon.json(
        "redact", place.store, str(number), path, "--reason", "a secret", *more
    )
    return document


def failed(place: Place, call: str, *arguments: object) -> int | None:
    with pytest.raises(OSError, match=r".") as caught:
        place.inside.call(call, *arguments)
    return caught.value.errno


def test_the_head_is_refused_and_after_a_new_version_nobody_reads_it_any_more(place: Place) -> None:
    place.write("notes", SECRET)
    refused = place.daemon.command("redact", place.store, "1", "notes", "--reason", "a secret")
    assert (refused.code, "notes" in refused.err, len(refused.err.splitlines())) == (5, True, 1)
    place.write("notes", b"clean\n")
    place.daemon.barrier()
    assert place.read(".versions/1/notes") == SECRET
    document = redact(place, 1, "notes")
    assert (document["versions"], document["standing"]) == ([1, 2], [])
    assert failed(place, "read", place.path(".versions/1/notes")) in GONE
    assert place.read("notes") == b"clean\n"
    assert place.read(".versions/2/notes") == b"clean\n"
    shown = place.daemon.command("show", f"{place.store}@1:notes")
    assert (shown.code, f"what notes held in {place.store}@1 was redacted" in shown.err) == (3, True)
    blamed = place.daemon.command("blame", f"{place.store}@1", "notes")
    assert (blamed.code, f"what notes held in {place.store}@1 was redacted" in blamed.err) == (3, True)
    restored = place.daemon.command("restore", f"{place.store}@1", "notes")
    assert (restored.code, "redacted" in restored.err) == (3, True)
    assert [len(version["changes"]) for version in place.log()] == [1, 1]


def test_restore_and_export_name_what_has_no_content_any_more(place: Place, tmp_path: Path) -> None:
    place.write("notes", SECRET)
    place.write("other", b"one\n")
    place.daemon.barrier()
    first = place.log()[0]["number"]
    place.write("notes", b"clean\n")
    place.write("other", b"two\n")
    place.daemon.barrier()
    place.inside.call("os.rename", place.path("notes"), place.path("renamed"))
    place.daemon.barrier()
    redact(place, first, "notes")
    exported = place.daemon.command("export", f"{place.store}@{first}", str(tmp_path / "plain"))
    assert "1 file whose content was redacted, left out: notes" in exported.err
    restored = place.daemon.command("restore", f"{place.store}@{first}")
    assert (restored.code, "1 file whose content was redacted, not restored" in restored.err) == (0, True)
    assert restored.err.rstrip().endswith(": notes")
    assert (place.read("notes"), place.read("other")) == (b"clean\n", b"one\n")


def test_no_summary_or_patch_names_the_path_that_a_change_lost(place: Place) -> None:
    place.write("hunter2-notes", SECRET)
    place.daemon.barrier()
    place.write("hunter2-notes", b"clean\n")
    place.daemon.barrier()
    redact(place, 1, "hunter2-notes")
    first = f"{place.store}@1"
    ways = ((), ("--stat",), ("-p",), ("--json", "-p"))
    for arguments in (("log", first), ("show", first)):
        told = [place.daemon.ok(*arguments, *options) for options in ways]
        assert [text for text in told if "hunter2" in text] == []
        assert " (redacted)" in told[0]
        assert "created file (redacted) | redacted" in told[1]
        assert "binary" not in told[1]
        assert "created file (redacted)\nthe content was redacted" in told[2]
    [version] = place.daemon.json("log", first, "--stat")
    [difference] = version["differences"]
    assert (difference["path"], difference["new"]["path"]) == ("", "")
    assert (difference["redacted"], difference["binary"]) == (True, False)
    second = f"{place.store}@2"
    assert "modified file hunter2-notes | redacted" in place.daemon.ok("show", second, "--stat")
    shown = place.daemon.ok("show", second, "-p")
    assert "modified file hunter2-notes\nthe content from before was redacted" in shown
    assert "by root, what was there before:  a secret" in shown
    refused = place.daemon.command("revert", place.store, "2")
    assert (refused.code, "what hunter2-notes held before version 2" in refused.err) == (3, True)
    assert place.read("hunter2-notes") == b"clean\n"


def test_messages_that_name_the_path_are_said(place: Place) -> None:
    place.write("hunter2", SECRET)
    place.daemon.barrier()
    place.inside.call("os.unlink", place.path("hunter2"))
    place.daemon.barrier()
    place.daemon.ok("restore", f"{place.store}@1", "hunter2")
    place.inside.call("os.unlink", place.path("hunter2"))
    place.daemon.barrier()
    document = redact(place, 1, "hunter2")
    assert document["messages"] == [{"store": place.store, "version": 3, "path": ""}]
    redact(place, 3, "hunter2")
    place.daemon.json("redact", place.store, "3", "--message", "--reason", "a secret")
    assert "hunter2" not in place.daemon.ok("log", place.store)


def test_a_rename_from_a_redacted_name_names_the_new_one_alone(place: Place) -> None:
    place.write("hunter2", b"text\n")
    place.daemon.barrier()
    place.inside.call("os.rename", place.path("hunter2"), place.path("notes"))
    place.daemon.barrier()
    redact(place, 1, "hunter2")
    told = [place.daemon.ok("show", f"{place.store}@2", *options) for options in ((), ("--stat",), ("-p",))]
    assert [text for text in told if "hunter2" in text] == []
    assert "(redacted) → notes" in told[0]


def test_what_is_open_or_cached_of_a_pinned_version_shows_no_stale_bytes(place: Place) -> None:
    place.write("notes", SECRET * 10_000)
    place.write("secret", SECRET)
    place.daemon.barrier()
    place.write("notes", b"clean\n")
    place.inside.call("os.unlink", place.path("secret"))
    place.daemon.barrier()
    opened = place.daemon.json("session", "open", "--attach", f"{place.store}@1=/mnt/memory/pinned:read_only")
    root = f"{place.root}-pinned"
    place.inside.call("os.makedirs", root, exist_ok=True)
    place.daemon.ok("attach", opened["id"], "--root", root)
    try:
        pinned = f"{root}/mnt/memory/pinned"
        held = []
        for path in (f"{pinned}/notes", f"{pinned}/secret", place.path(".versions/1/notes")):
            assert place.inside.call("read", path).startswith(SECRET)
            held.append(place.inside.call("os.open", path, os.O_RDONLY))
        redact(place, 1, "notes")
        redact(place, 1, "secret")
        for descriptor in held:
            assert failed(place, "os.pread", descriptor, 100, 0) in GONE
            place.inside.call("os.close", descriptor)
        assert failed(place, "read", f"{pinned}/notes") in GONE
        assert failed(place, "read", f"{pinned}/secret") == errno.ENOENT
        assert place.inside.call("names", pinned) == ["notes"]
    finally:
        place.inside.shell(f"umount -R -l {root}/*/* {root}/* 2>/dev/null || true")
        place.daemon.ok("session", "close", opened["id"])


def test_what_is_not_sealed_yet_is_sealed_before(place: Place) -> None:
    place.write("notes", SECRET)
    place.daemon.barrier()
    place.write("notes", b"clean\n")
    assert redact(place, 1, "notes")["versions"] == [1, 2]


def test_where_it_still_is_is_said_and_everywhere_takes_it_there_too(place: Place) -> None:
    for name in ("a", "b"):
        place.write(name, SECRET)
    place.daemon.barrier()
    for name in ("a", "b"):
        place.write(name, b"clean\n")
    document = redact(place, 1, "a")
    assert document["standing"] == [{"store": place.store, "version": 1, "path": "b"}]
    assert redact(place, 1, "b", "--everywhere")["standing"] == []
    assert failed(place, "read", place.path(".versions/1/b")) in GONE


def test_another_worker_drops_what_the_kernel_was_told_by_the_one_before(place: Place) -> None:
    place.write("notes", SECRET)
    place.daemon.barrier()
    place.write("notes", b"clean\n")
    place.daemon.barrier()
    path = place.path(".versions/1/notes")
    assert place.read(".versions/1/notes") == SECRET
    held = place.inside.call("os.open", path, os.O_RDONLY)
    place.daemon.ok("restart")
    redact(place, 1, "notes")
    assert failed(place, "os.pread", held, 100, 0) in GONE
    place.inside.call("os.close", held)
    assert failed(place, "read", path) in GONE


def test_the_name_of_a_directory_goes_from_old_trees_and_paths_and_from_what_the_kernel_keeps(
    place: Place,
) -> None:
    place.inside.call("os.makedirs", place.path("hunter2/deep"))
    place.write("hunter2/deep/a", b"text\n")
    place.daemon.barrier()
    refused = place.daemon.command("redact", place.store, "1", "hunter2", "--reason", "a secret")
    assert (refused.code, "hunter2" in refused.err) == (5, True)
    place.inside.call("os.rename", place.path("hunter2"), place.path("clean"))
    place.daemon.barrier()
    assert place.read(".versions/1/hunter2/deep/a") == b"text\n"
    document = redact(place, 1, "hunter2")
    assert document["versions"] == [1, 2]
    assert failed(place, "read", place.path(".versions/1/hunter2/deep/a")) == errno.ENOENT
    [name] = place.names(".versions/1")
    assert name == document["instead"]
    assert place.read(f".versions/1/{name}/deep/a") == b"text\n"
    assert place.read("clean/deep/a") == b"text\n"
    for options in ((), ("--stat",), ("-p",), ("--json",)):
        assert "hunter2" not in place.daemon.ok("log", place.store, *options)
    place.daemon.check_soundness(place.store)


def test_with_everything_below_it_and_the_message_nothing_is_left(place: Place) -> None:
    """Other tests leave other secrets in what they share, so this one has one of its own."""
    place.inside.call("os.setxattr", place.path(), "user.engramfs.message", b"about staple9")
    place.inside.call("os.makedirs", place.path("staple9"))
    place.write("staple9/a", SECRET.replace(b"hunter2", b"staple9"))
    place.daemon.barrier()
    place.inside.shell(f"rm -r {place.path('staple9')}")
    place.daemon.barrier()
    redact(place, 1, "staple9", "--recursive")
    document = place.daemon.json("redact", place.store, "1", "--message", "--reason", "a secret")
    assert (document["versions"], document["standing"]) == ([1], [])
    shown = place.daemon.ok("show", f"{place.store}@1")
    assert "staple9" not in shown
    assert "its message:" in shown
    usage = place.daemon.command("redact", place.store, "1", "--reason", "a secret")
    assert (usage.code, "N PATH, or N --message" in usage.err) == (2, True)
    place.daemon.check_soundness(place.store)
    place.daemon.ok("gc")
    assert [
        name
        for above, _, names in os.walk(place.daemon.state)
        for name in names
        if b"staple9" in Path(above, name).read_bytes()
    ] == []


def test_without_a_daemon_what_the_last_one_said_of_it_goes_too(handbook: Command) -> None:
    failures = handbook.directory / "run/failures"
    failures.parent.mkdir(mode=0o700)
    said = [[1, "contexts/handbook", "old/a was closed"], [2, "contexts/handbook", "notes.md was closed"]]
    failures.write_text("".join(f"{json.dumps(line)}\n" for line in said))
    handbook.ok("redact", "contexts/handbook", "1", "old/a", "--reason", "a secret", "--json")
    left = [json.loads(line)[2] for line in failures.read_text().splitlines()]
    assert left == ["(redacted) was closed", "notes.md was closed"]
