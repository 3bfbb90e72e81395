"""`engramfs export STORE[@N] DIR`: a tree as plain files; `--git DIR`: the history as a git repository."""

import os
from typing import TYPE_CHECKING

import click
import msgspec

from engramfs.cli import offline
from engramfs.cli.arguments import complete_stores, refer
from engramfs.cli.command import Command
from engramfs.cli.copies import outside_state
from engramfs.cli.invocation import Invocation, pass_invocation
from engramfs.cli.versions import note_redacted
from engramfs.errors import UsageError
from engramfs.model.quantities import format_size
from engramfs.model.shell_words import shell_word

if TYPE_CHECKING:
    from engramfs.history.git.exporting import GitExported


@click.command("export", cls=Command, short_help="Write a tree as plain files, or all as git.")
@click.argument("reference", metavar="STORE[@N]", shell_complete=complete_stores)
@click.argument("directory", required=False, type=click.Path(), metavar="[DIR]")
@click.option("--git", "repository", type=click.Path(), metavar="DIR", help="Write the history as commits.")
@click.option("--bare", is_flag=True, help="With --git, make a repository without a working tree.")
@pass_invocation
def command(
    invocation: Invocation, reference: str, directory: str | None, repository: str | None, bare: bool
) -> None:
    """Write the tree of STORE, or of its version N, into DIR, which is made or has to be empty.

    With --git, every version becomes a commit of the branch main there; run again, it adds what is new. It
    does so beside main, as engramfs/main, while people have commits there that STORE does not: merge it, and
    import --git.
    """
    if (directory is None) == (repository is None):
        raise UsageError("where to? give DIR for plain files, or --git DIR for the history as commits")
    if bare and repository is None:
        raise UsageError("--bare makes a git repository; give --git DIR with it")
    if repository is not None:
        _export_history(invocation, reference, outside_state(invocation, repository), bare)
    elif directory is not None:
        _export_tree(invocation, reference, outside_state(invocation, directory))


def _export_tree(invocation: Invocation, reference: str, directory: str) -> None:
    from engramfs.history import catalog, exporting

    with offline.reading(invocation) as repository:
        with repository.engine.reading() as reader:
            wanted = refer(reader, reference)
            if wanted.path:
                raise UsageError(
                    f"export writes whole trees; engramfs show {shell_word(reference)} prints that path"
                )
            store = catalog.named(reader, wanted.store)
            newest = catalog.head(reader, store.id).number
        number = newest if wanted.version is None else wanted.version
        with invocation.output.progress(f"exporting {store.name}") as progress:
            exported = exporting.export(repository, store, number, os.fsencode(directory), progress)
    if invocation.json:
        facts = {"store": store.name, "version": number, "directory": directory}
        invocation.output.document({**facts, **msgspec.to_builtins(exported)})
        return  # the document says what is left out
    size = format_size(exported.bytes)
    invocation.output.line(("exported", "green"), f"{store.name}@{number}", f"{exported.files:,} files", size)
    note_redacted(invocation.output, exported.redacted_paths, "left out")
    if exported.without_xattrs:
        invocation.output.note(
            f"{exported.without_xattrs} lost their attributes, which {directory} cannot keep"
        )


def _export_history(invocation: Invocation, reference: str, directory: str, bare: bool) -> None:
    from engramfs.history import catalog
    from engramfs.history.git import exporting

    with offline.reading(invocation) as repository:
        with repository.engine.reading() as reader:
            wanted = refer(reader, reference)
            if wanted.version is not None or wanted.path:
                raise UsageError(
                    f"export --git writes the whole history; name the store alone: {wanted.store}"
                )
            store = catalog.named(reader, wanted.store)
        with invocation.output.progress(f"exporting {store.name}") as progress:
            exported = exporting.export(
                repository, store, os.fsencode(directory), bare=bare, progress=progress
            )
    if invocation.json:
        facts = {"store": store.name, "directory": directory}
        invocation.output.document({**facts, **msgspec.to_builtins(exported)})
    else:
        count = f"{exported.commits:,} new commit{'' if exported.commits == 1 else 's'}"
        name = f"{store.name}@{exported.version}"
        invocation.output.line(("exported", "green"), name, count, format_size(exported.bytes))
    _say_what_git_lacks(invocation, exported, store.name, directory)


def _say_what_git_lacks(invocation: Invocation, exported: "GitExported", store: str, directory: str) -> None:
    note = invocation.output.note
    if exported.empty_directories:
        note(f"empty directories are not there, since git keeps none: {exported.empty_directories}")
    if exported.refused:
        note(f"left out, since git holds no path with a part like .git: {exported.refused}")
    if exported.unknown:
        note(_what_it_lacks(exported, store, directory))
    if exported.redacted_since:
        numbers = ", @".join(map(str, exported.redacted_since))
        note(
            f"{directory} still holds what was redacted from @{numbers} after it was exported; "
            f"engramfs export --git NEW {store} makes a repository without it, then delete this one"
        )


def _what_it_lacks(exported: "GitExported", store: str, directory: str) -> str:
    """How the commits that people made in the repository get into the store."""
    commits = f"{exported.unknown:,} commit{'' if exported.unknown == 1 else 's'}"
    bring = f"engramfs import --git {shell_word(directory)} {store}"
    if not exported.commits:
        return f"main there has {commits} that {store} does not; {bring} brings them in"
    return (
        f"main there has {commits} that {store} does not, so what is new is beside it; "
        f"git -C {shell_word(directory)} merge engramfs/main, then {bring}"
    )
