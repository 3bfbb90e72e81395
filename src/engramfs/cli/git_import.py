"""`engramfs import --git DIR STORE`: commits as versions.

Git runs here, as the person and in the mount namespace of the command; whoever writes the store, a daemon
or this process, reads the pipe that it writes to.
"""

import os
from typing import IO, TYPE_CHECKING, Any

from engramfs.cli import offline
from engramfs.cli.arguments import now
from engramfs.cli.invocation import Invocation
from engramfs.cli.missing_store import must_exist
from engramfs.model.names import printable

if TYPE_CHECKING:
    from engramfs.cli.output import Progress
    from engramfs.history.git.building_on import Imported
    from engramfs.history.git.source import Source
    from engramfs.history.repository import Repository

_SHOWN = 3  # paths that were left out


def import_history(
    invocation: Invocation, name: str, directory: str, ref: str, *, create: bool, over: bool
) -> None:
    """Import what is new in the repository at `directory`, and say what became of it."""
    from engramfs.history.git.source import Source

    source = Source(os.fsencode(directory), ref)
    must_exist(invocation, name, create=create)
    last = _last(invocation, name, source, over=over)
    new = source.commits.index(last.commit) if last is not None else len(source.commits)
    with (
        invocation.output.progress(f"importing {name}") as progress,
        source.stream(last.commit if last is not None else None) as stream,
    ):
        document = _import(invocation, name, stream, new, last, progress, over=over)
    if invocation.json:
        invocation.output.document(document)
    else:
        versions = f"{document['versions']:,} new version{'' if document['versions'] == 1 else 's'}"
        commits = f"of {new:,} commit{'' if new == 1 else 's'}"
        invocation.output.line(
            ("imported", "green"), f"{name}@{document['version']}", f"{versions} {commits}"
        )
    if skipped := document["skipped"]:
        shown = ", ".join(skipped[:_SHOWN])
        more = f" and {len(skipped) - _SHOWN} more" if len(skipped) > _SHOWN else ""
        why = "a store keeps neither submodules nor .versions"
        invocation.output.note(f"left out, since {why}: {shown}{more}")


def _last(invocation: Invocation, name: str, source: "Source", *, over: bool) -> "Imported | None":
    from engramfs.history import catalog
    from engramfs.history.git.building_on import where_to_go_on

    with offline.reading(invocation) as repository:
        with repository.engine.reading() as reader:
            store = catalog.writable(reader, name)
        return where_to_go_on(repository, store, source, over=over)


def _import(
    invocation: Invocation,
    name: str,
    stream: IO[bytes],
    new: int,
    last: "Imported | None",
    progress: "Progress",
    *,
    over: bool,
) -> dict[str, Any]:
    base = last.number if last is not None else 0

    def by_daemon() -> Any:
        def report(params: dict[str, Any]) -> None:
            progress(params["done"], new, 0, 0)

        return invocation.client.call(
            "import.git",
            store=name,
            stream=stream.fileno(),
            base=base,
            over=over,
            progress=report,
            timeout=600,
        )

    def alone(repository: "Repository") -> Any:
        return _import_alone(repository, name, stream, new, base, progress, over=over)

    document: dict[str, Any] = offline.write(invocation, "engramfs import", by_daemon, alone)
    return document


def _import_alone(
    repository: "Repository",
    name: str,
    stream: IO[bytes],
    new: int,
    base: int,
    progress: "Progress",
    *,
    over: bool,
) -> dict[str, Any]:
    from engramfs.history import catalog, commit
    from engramfs.history.git.fast_export import GitCommit
    from engramfs.history.git.importing import GitImport
    from engramfs.storage.protocol import Writer

    with repository.engine.reading() as reader:
        store = catalog.writable(reader, name)
    versions = 0
    run = GitImport(repository, store, offline.person(), base, over=over)
    for done, each in enumerate(run.commits(stream), start=1):

        def body(writer: Writer, each: GitCommit = each) -> int | None:
            version = commit.apply(writer, run.plan(writer, store, each, now()))
            return version.number if version is not None else None

        number = repository.transact(body)
        run.done(number)
        versions += number is not None
        progress(done, new, 0, 0)
    with repository.engine.reading() as reader:
        head = catalog.head(reader, store.id).number
    return {
        "versions": versions,
        "version": head,
        "skipped": [printable(path) for path in sorted(run.skipped)],
    }
