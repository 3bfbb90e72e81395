"""`engramfs log STORE [PATH]`: the versions of a store, newest first."""

from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import click
import msgspec

from engramfs.cli.arguments import parse_since, refer, reference_argument, with_path
from engramfs.cli.command import Command
from engramfs.cli.invocation import Invocation, pass_invocation
from engramfs.cli.pager import no_pager, paged
from engramfs.cli.patches import binary_option
from engramfs.errors import NotFound, UsageError
from engramfs.model.names import printable, raw
from engramfs.model.shell_words import path_word
from engramfs.model.version import FLAGS

if TYPE_CHECKING:
    from engramfs.cli.version_printing import VersionPrinter
    from engramfs.history.selection import Selected, Selection
    from engramfs.model.reference import Reference
    from engramfs.model.store import Store
    from engramfs.storage.protocol import Reader


class _Asked(msgspec.Struct):
    """The options, as they were given."""

    limit: int | None
    author: str | None
    session: str | None
    by: str | None
    flag: str | None
    since: str | None
    only_path: str | None
    follow: bool
    stat: bool
    patch: bool
    binary: bool
    watch: bool
    no_pager: bool


@click.command("log", cls=Command, short_help="The versions of a store.")
@reference_argument
@click.argument("path", required=False)
@click.option("-n", "--number", "limit", type=click.IntRange(min=1), metavar="N", help="At most N versions.")
@click.option("--author", metavar="TEXT", help="By authors whose name contains TEXT.")
@click.option("--session", metavar="ID", help="Of the session whose id begins with ID.")
@click.option("--by", type=click.Choice(["agent", "person", "system"]), help="By such authors.")
@click.option("--flag", type=click.Choice(FLAGS), metavar="F", help=f"With the flag F: {', '.join(FLAGS)}.")
@click.option("--since", metavar="TIME", help="Not older than a time, or than a duration such as 2d.")
@click.option("--path", "only_path", metavar="PATH", help="That changed PATH or something below it.")
@click.option("--follow", is_flag=True, help="The file at PATH under its earlier names as well.")
@click.option("--stat", is_flag=True, help="With how many lines came and went in each file.")
@click.option("-p", "--patch", is_flag=True, help="With the lines themselves.")
@binary_option
@click.option("--pending", is_flag=True, help="Only what waits for approval: see engramfs pending.")
@click.option("--watch", is_flag=True, help="Wait, and show versions as they are sealed.")
@no_pager
@pass_invocation
def command(invocation: Invocation, /, reference: str, path: str | None, **options: Any) -> None:
    """Show the versions of STORE, newest first; with PATH only those that touched it.

    STORE@N begins at version N. Every condition that is given has to hold. With --watch, versions that are
    sealed from now on (or since --since) are shown, oldest first, until Ctrl-C, or N of them. With --pending,
    what waits is shown oldest first, or the newest N of it.
    """
    is_pending = options.pop("pending")
    asked = _Asked(**options)
    if is_pending:
        _show_pending(invocation, reference, path, asked)
    else:
        _show(invocation, reference, path, asked)


def _show(invocation: Invocation, reference: str, path: str | None, asked: _Asked) -> None:
    from engramfs.cli.version_printing import VersionPrinter
    from engramfs.history import catalog, hygiene

    with invocation.opened() as client, paged(invocation, unless=asked.no_pager or asked.watch):
        with client.reading() as reader:
            wanted = with_path(refer(reader, reference), path)
            selection = _selection(asked, wanted)
            store = catalog.named(reader, wanted.store)
            head = catalog.head(reader, store.id)
            printer = VersionPrinter(
                invocation,
                store,
                head,
                stat=asked.stat,
                patch=asked.patch,
                binary=asked.binary,
                secrets=asked.flag == hygiene.FLAG,
            )
            if not asked.watch:
                found = _found(reader, store, wanted, selection, invocation.output.note)
                _print(reader, printer, islice(found, asked.limit))
        if asked.watch:
            from engramfs.cli.watching import watch
            from engramfs.client.reading_engine import ReadingEngine

            _check_watchable(wanted, selection)
            watch(ReadingEngine(client), store, selection, head.number, asked.limit, printer)


def _show_pending(invocation: Invocation, reference: str, path: str | None, asked: _Asked) -> None:
    from engramfs.cli import log_pending

    given = {"--follow": asked.follow, "--stat": asked.stat, "-p": asked.patch, "--watch": asked.watch}
    unless = asked.no_pager
    with invocation.opened() as client, paged(invocation, unless=unless), client.reading() as reader:
        wanted = with_path(refer(reader, reference), path)
        log_pending.check(wanted, given)
        log_pending.print_selected(invocation, reader, wanted, _selection(asked, wanted), asked.limit)


def _selection(asked: _Asked, wanted: "Reference") -> "Selection":
    from engramfs.history.selection import Selection

    if asked.only_path is not None and wanted.path:
        raise UsageError("a path was given twice; write STORE PATH or STORE --path PATH")
    path = wanted.path if asked.only_path is None else raw(asked.only_path).strip(b"/")
    if asked.follow and not path:
        raise UsageError("--follow needs the PATH of one file or directory")
    return msgspec.convert(
        {
            "author": asked.author,
            "session": asked.session,
            "by": asked.by,
            "flag": asked.flag,
            "since": parse_since(asked.since) if asked.since is not None else None,
            "path": path or b"",
            "follow": asked.follow,
        },
        Selection,
    )


def _check_watchable(wanted: "Reference", selection: "Selection") -> None:
    if wanted.version is not None or selection.follow:
        raise UsageError("--watch shows what is sealed from now on; leave out @N and --follow")


def _found(
    reader: "Reader",
    store: "Store",
    wanted: "Reference",
    selection: "Selection",
    note: Callable[[str], None],
) -> Iterator["Selected"]:
    """What is asked for; when that is nothing, an author or a session that nobody ever was is noted.

    Raises `NotFound` for a path that nothing ever touched: a mistyped one, mostly.
    """
    from engramfs.history import catalog, log
    from engramfs.history.selection import Selection, select

    if wanted.version is not None:
        log.version(reader, store, wanted.version)  # an unknown number is an error, not an empty log
    newest = wanted.version or catalog.head(reader, store.id).number
    found = select(reader, store, selection, newest)
    first = next(found, None)
    if first is not None:
        return chain([first], found)
    path_alone = Selection(path=selection.path, follow=selection.follow)
    if selection.path and not any(True for _ in select(reader, store, path_alone, newest)):
        raise _untouched(reader, store, wanted, selection, newest)
    for unknown in _unknown(reader, store, selection, newest):
        note(unknown)
    return iter(())


def _untouched(
    reader: "Reader", store: "Store", wanted: "Reference", selection: "Selection", newest: int
) -> NotFound:
    """No version that there is changed the path: retention may have removed those that did."""
    from engramfs.history.tree import resolve, version_tree

    shown, until = printable(selection.path), "" if wanted.version is None else f" up to {wanted.version}"
    if not selection.follow and resolve(version_tree(reader, store, newest), selection.path) is not None:
        return NotFound(
            f"no version{until} of {wanted.store} that is kept changed {shown} under that name; "
            f"engramfs log {wanted.store} {path_word(selection.path)} --follow looks for earlier ones"
        )
    return NotFound(
        f"no version{until} of {wanted.store} has {shown}; "
        f"engramfs log {wanted.store} shows what each changed"
    )


def _unknown(reader: "Reader", store: "Store", selection: "Selection", newest: int) -> Iterator[str]:
    """The conditions that no version at all meets, for people."""
    from engramfs.history.selection import Selection, select

    alone = {
        f"has an author whose name contains {selection.author}": Selection(author=selection.author),
        f"is of a session whose id begins with {selection.session}": Selection(session=selection.session),
    }
    for what, condition in alone.items():
        is_given = condition != Selection()
        if is_given and not any(True for _ in select(reader, store, condition, newest)):
            yield f"no version of {store.name} {what}; engramfs show {store.name}@N names both"


def _print(reader: "Reader", printer: "VersionPrinter", found: Iterator["Selected"]) -> None:
    if printer.as_json:
        printer.print_documents(reader, found)
        return
    for one in found:
        printer.print_line(reader, one)
