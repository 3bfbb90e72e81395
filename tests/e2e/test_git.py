"""A store that was written through a mount, as a git repository."""

import os
import random
import subprocess
from pathlib import Path

from engramfs.history import catalog
from engramfs.history.repository import Repository
from engramfs.history.tree import tree_at, walk
from engramfs.model.entry import Kind

from ..harness.daemon import Place

Tree = dict[bytes, tuple[int, bytes]]  # mode and digest, or target, by path


def git(directory: Path, *arguments: str) -> bytes:
    return subprocess.run(
        ["git", *arguments], cwd=directory, capture_output=True, timeout=30, check=True
    ).stdout


def wild(place: Place, seed: int, count: int) -> None:
    """Batches in which directories are made, moved with what is in them, replaced, and removed."""
    chosen = random.Random(seed)
    names = ["a", "b", "c", "a/x", "b/x", "c/y", "a/x/deep", "b/y/deep"]
    for number in range(count):
        lines = []
        for step in range(chosen.randint(1, 6)):
            one, other = chosen.sample(names, 2)
            lines += [
                [f"mkdir -p {one}", f"echo {seed} {number} {step} > {one}/f{step}"],
                [f"mv -T {one} {other}"],
                [f"rm -rf {one}"],
                [f"rm -rf {one}", f"mkdir -p $(dirname {one})", f"echo file {number} > {one}"],
                [f"ln -sfn {other} {one}"],
                [f"chmod -R +x {one}"],
                [f"ln {one} {other}"],
            ][chosen.randrange(7)]
        place.inside.shell(
            f"cd {place.state}; " + "; ".join(f"({line}) 2>/dev/null || true" for line in lines)
        )
        place.daemon.barrier()


def trees_of(place: Place) -> list[set[bytes]]:
    """The paths of files and symlinks in each version."""
    with Repository.open(place.daemon.state) as repository, repository.engine.reading() as reader:
        store = catalog.named(reader, place.store)
        newest = catalog.head(reader, store.id).number
        return [
            {path for path, entry in walk(tree_at(reader, store, number)) if entry.kind is not Kind.DIRECTORY}
            for number in range(1, newest + 1)
        ]


def test_what_agents_did_through_a_mount_is_in_git_version_by_version(place: Place) -> None:
    directory = place.daemon.directory / f"{place.agent}-git"
    wild(place, seed=1, count=20)
    place.daemon.ok("export", "--git", str(directory), place.store)
    wild(place, seed=2, count=20)
    done = place.daemon.json("export", "--git", str(directory), place.store)
    expected = trees_of(place)
    commits = git(directory, "rev-list", "--reverse", "main").decode().split()
    assert len(commits) == len(expected) == done["version"] > 20
    for commit, paths in zip(commits, expected, strict=True):
        listed = git(directory, "ls-tree", "-r", "-z", "--name-only", commit).split(b"\0")
        assert {path for path in listed if path} == paths
    assert git(directory, "status", "--porcelain") == b""
    for path in expected[-1]:
        name, mounted = os.path.join(os.fsencode(directory), path), place.path(os.fsdecode(path))
        if os.path.islink(name):
            assert os.readlink(name) == os.fsencode(place.inside.call("os.readlink", mounted))
        else:
            with open(name, "rb") as file:
                assert file.read() == place.inside.call("read", mounted)
    actor = place.agent.replace("agent", "actor")
    author = git(directory, "log", "-1", "--format=%an <%ae>").decode().strip()
    assert author == f"{place.agent} for {actor} <{place.agent}+{actor}@engramfs>"


def test_commits_are_imported_while_a_daemon_serves_the_store(place: Place) -> None:
    directory = place.daemon.directory / f"{place.agent}-work"
    directory.mkdir()
    git(directory, "init", "-q", "-b", "main")
    identity = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    for number in range(3):
        (directory / "file").write_bytes(b"%d" % number)
        (directory / f"f{number}").write_bytes(os.urandom(3 << 20) if number == 1 else b"")
        git(directory, "add", "-A")
        git(directory, *identity, "commit", "-q", "-m", f"number {number}")
    done = place.daemon.json("import", "--git", str(directory), place.store)
    assert done == {"versions": 3, "version": 3, "skipped": []}
    with Repository.open(place.daemon.state) as repository, repository.engine.reading() as reader:
        next_node = catalog.head(reader, catalog.named(reader, place.store).id).next_node
    assert next_node < 1000, "the ids of a store, which are many but not without end, are not used up"
    assert place.read("file") == b"2"
    assert place.read("f1") == (directory / "f1").read_bytes()
    assert place.read(".versions/1/file") == b"0"
    place.write("file", b"agent")
    (directory / "file").write_bytes(b"3")
    git(directory, *identity, "commit", "-q", "-a", "-m", "number 3")
    refused = place.daemon.command("import", "--git", str(directory), place.store)
    assert (refused.code, place.read("file")) == (4, b"agent")
    place.daemon.ok("import", "--git", str(directory), place.store, "--over")
    assert place.read("file") == b"3"
    assert [version["author"]["actor"] for version in place.log()][:3] == ["Ann"] * 3
    said = place.daemon.ok("show", f"{place.store}@1").splitlines()
    start = next(number for number, line in enumerate(said) if line.startswith("source "))
    assert said[start].endswith("as the repository says it")
    assert said[start + 1].strip().startswith("Git-Commit: ")


def test_a_person_edits_an_agents_memory_in_git_and_brings_it_back(place: Place) -> None:
    directory = place.daemon.directory / f"{place.agent}-edited"
    identity = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    place.inside.shell(
        f"cd {place.state}; mkdir -m 700 empty; echo one > notes; chmod 600 notes; ln notes link"
    )
    place.daemon.ok("export", "--git", str(directory), place.store)
    (directory / "notes").write_bytes(b"corrected")
    git(directory, *identity, "commit", "-q", "-a", "-m", "corrected")
    assert place.daemon.json("import", "--git", str(directory), place.store)["versions"] == 1
    assert (place.read("notes"), place.read("link")) == (b"corrected", b"one\n")
    modes = place.inside.shell(f"stat -c %a {place.state}/notes {place.state}/empty")
    assert modes.split() == ["600", "700"]
    (directory / "notes").write_bytes(b"again")
    git(directory, *identity, "commit", "-q", "-a", "-m", "again")
    place.write("agent", b"meanwhile")
    refused = place.daemon.command("import", "--git", str(directory), place.store)
    assert (refused.code, place.read("notes")) == (4, b"corrected")
    said = place.daemon.command("export", "--git", str(directory), place.store)
    assert f"git -C {directory} merge engramfs/main, then engramfs import --git" in said.err
    git(directory, *identity, "merge", "-q", "--no-edit", "engramfs/main")
    place.daemon.ok("import", "--git", str(directory), place.store)
    assert (place.read("notes"), place.read("agent")) == (b"again", b"meanwhile")
    assert place.daemon.json("export", "--git", str(directory), place.store)["commits"] == 0


def test_what_was_redacted_is_not_in_a_new_repository_and_an_old_one_says_that_it_is(place: Place) -> None:
    for content in (b"hunter2 is the password", b"nothing to see", b"still nothing"):
        place.write("notes", content)
        place.daemon.barrier()
    old, new = (place.daemon.directory / f"{place.agent}-{name}" for name in ("old", "new"))
    place.daemon.ok("export", "--git", str(old), place.store)
    place.daemon.ok("redact", place.store, "1", "notes", "--reason", "a password")
    said = place.daemon.command("export", "--git", str(old), place.store)
    assert said.code == 0
    assert f"{old} still holds what was redacted from @1" in said.err
    assert f"engramfs export --git NEW {place.store} makes a repository without it" in said.err
    place.daemon.ok("export", "--git", str(new), place.store)
    commits = git(new, "rev-list", "--reverse", "main").decode().split()
    assert git(new, "ls-tree", "--name-only", commits[0]) == b""
    assert [git(new, "show", f"{commit}:notes") for commit in commits[1:]] == [
        b"nothing to see",
        b"still nothing",
    ]
    assert b"hunter2" not in git(new, "log", "-p", "--all")
    assert b": a password" in git(new, "log", "--format=%B", commits[0])
