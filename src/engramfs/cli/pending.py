"""`engramfs pending …`: what waits for a person, and the decisions on it."""

from typing import TYPE_CHECKING, Any

import click

from engramfs.cli import offline
from engramfs.cli.arguments import now, store_argument
from engramfs.cli.command import LazyGroup
from engramfs.cli.invocation import Invocation, pass_invocation
from engramfs.errors import NotFound, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from engramfs.history.approval import Decided
    from engramfs.history.repository import Repository
    from engramfs.model.pending import Pending
    from engramfs.model.store import Store
    from engramfs.storage.protocol import Reader, Writer

Document = dict[str, Any]
_COLOURS = {"open": "yellow", "approved": "green", "rejected": "red"}


@click.group("pending", cls=LazyGroup, short_help="What waits for approval: list, show, approve, reject.")
def command() -> None:
    """Look at what waits for approval, and decide on it.

    A session with the access `ask` sees its own changes; for everybody else they wait, one pending version
    for each batch, until somebody approves or rejects them. N may be left out while one alone is open.
    """


number_argument = click.argument("number", required=False, type=click.IntRange(min=1), metavar="[N]")


@command.command("list")
@store_argument
@click.option("--all", "every", is_flag=True, help="Also what was decided.")
@pass_invocation
def list_pending(invocation: Invocation, /, name: str, every: bool) -> None:
    """List what is open for STORE, oldest first."""
    with offline.reading(invocation) as repository, repository.engine.reading() as reader:
        print_list(invocation, reader, _named(reader, name), every=every)


def print_list(invocation: Invocation, reader: "Reader", store: "Store", *, every: bool = False) -> None:
    """What is open for a store, oldest first, or all that ever was."""
    from engramfs.history import pending

    found: Iterable[Pending] = (
        pending.every(reader, store.id) if every else (each for _, each in pending.waiting(reader, store.id))
    )
    if invocation.json:
        invocation.output.document([pending.describe(reader, store, each) for each in found])
        return
    for each in found:
        _print_line(invocation, reader, each)


def _print_line(invocation: Invocation, reader: "Reader", pending: "Pending") -> None:
    from engramfs.cli.versions import local_time, summary
    from engramfs.history import catalog, log

    version = log.version(reader, catalog.get(reader, pending.fork), pending.version)
    shown = [
        change for _, change in zip(range(3), log.changes(reader, pending.fork, version.number), strict=False)
    ]
    invocation.output.line(
        (f"{pending.number:>4}", "yellow"),
        (f"{pending.state:<8}", _COLOURS[pending.state]),
        f"on @{pending.base}",
        local_time(version.time),
        (version.author.label(), "cyan"),
        *summary(version, shown),
        pending.reason,
    )


@command.command("show")
@store_argument
@number_argument
@click.argument("path", required=False)
@pass_invocation
def show(invocation: Invocation, /, name: str, number: int | None, path: str | None) -> None:
    """Show a pending version of STORE and its changes; with PATH the file or directory as it would be."""
    from engramfs.model.names import raw

    with offline.reading(invocation) as repository, repository.engine.reading() as reader:
        store, pending = _find(reader, name, number)
        if path is not None:
            _show_path(invocation, reader, pending, raw(path).strip(b"/"))
        elif invocation.json:
            invocation.output.document(_describe(reader, store, pending))
        else:
            _show(invocation, reader, store, pending)


def _show(invocation: Invocation, reader: "Reader", store: "Store", pending: "Pending") -> None:
    from engramfs.cli.versions import print_version
    from engramfs.history import catalog, log
    from engramfs.history.pending import line

    output = invocation.output
    output.line((f"pending {pending.number} of {store.name}", "yellow"), f"made from @{pending.base}")
    output.line("state  ", (line(pending), _COLOURS[pending.state]))
    version = log.version(reader, catalog.get(reader, pending.fork), pending.version)
    changes = log.changes(reader, pending.fork, pending.version)
    print_version(output, f"{store.name} pending {pending.number}", version, changes)


def _show_path(invocation: Invocation, reader: "Reader", pending: "Pending", path: bytes) -> None:
    from engramfs.cli.show import show_entry
    from engramfs.history import catalog
    from engramfs.history.tree import version_tree

    tree = version_tree(reader, catalog.get(reader, pending.fork), pending.version)
    where = f"pending {pending.number}"
    show_entry(invocation, reader, tree, path, where, "engramfs pending show lists what it changes")


@command.command("approve")
@store_argument
@number_argument
@click.option("--reason", default="", metavar="TEXT", help="Becomes part of the version's message.")
@click.option("--merge", is_flag=True, help="Merge texts that changed meanwhile, line by line.")
@pass_invocation
def approve(invocation: Invocation, /, name: str, number: int | None, reason: str, merge: bool) -> None:
    """Let a pending version become a version of STORE, by its author.

    Refused (exit code 4), naming the paths, when one of them is not what it was when the change was made.
    """
    from engramfs.history import approval

    def alone(writer: "Writer", store: "Store", pending: int) -> "Decided":
        who = offline.person()
        return approval.approve(writer, store, pending, who, now(), reason, merge=merge)

    document = _decide(invocation, "approve", name, number, {"reason": reason, "merge": merge}, alone)
    if not invocation.json:
        became = f"{name}@{document['result']}"
        invocation.output.line(("approved", "green"), f"pending {document['number']} is {became}")


@command.command("reject")
@store_argument
@number_argument
@click.option("--reason", required=True, metavar="TEXT", help="Told to the session, and kept.")
@pass_invocation
def reject(invocation: Invocation, /, name: str, number: int | None, reason: str) -> None:
    """Let a pending version be. It stays readable, and the session that made it does not see it any more."""
    from engramfs.history import approval

    def alone(writer: "Writer", store: "Store", pending: int) -> "Decided":
        return approval.reject(writer, store, pending, offline.person(), now(), reason)

    document = _decide(invocation, "reject", name, number, {"reason": reason}, alone)
    if not invocation.json:
        stays = "; its session sees it until what builds on it is decided" if document["kept"] else ""
        invocation.output.line(("rejected", "red"), f"pending {document['number']} of {name}{stays}")


def _decide(
    invocation: Invocation,
    what: str,
    name: str,
    number: int | None,
    given: Document,
    alone: "Callable[[Writer, Store, int], Decided]",
) -> Document:
    """Let the daemon do it, or do it under the store lock; the pending version afterwards."""
    with offline.reading(invocation) as repository, repository.engine.reading() as reader:
        chosen = _find(reader, name, number)[1].number

    def by_hand(repository: "Repository") -> Document:
        def body(writer: "Writer") -> Document:
            store = _named(writer, name)
            alone(writer, store, chosen)
            return _describe(writer, *_find(writer, name, chosen))

        return repository.transact(body)

    document: Document = offline.write(
        invocation,
        f"engramfs pending {what}",
        lambda: invocation.client.call(f"pending.{what}", store=name, number=chosen, **given),
        by_hand,
    )
    if invocation.json:
        invocation.output.document(document)
    return document


def _named(reader: "Reader", name: str) -> "Store":
    from engramfs.history import catalog

    return catalog.named(reader, name)


def _describe(reader: "Reader", store: "Store", pending: "Pending") -> Document:
    from engramfs.history.pending import describe

    return describe(reader, store, pending)


def _find(reader: "Reader", name: str, number: int | None) -> "tuple[Store, Pending]":
    """The store, and what is meant: number N, or the only one that is open."""
    from engramfs.history import pending

    store = _named(reader, name)
    if number is not None:
        return store, pending.get(reader, store, number)
    found = [each for _, each in pending.waiting(reader, store.id)]
    if not found:
        raise NotFound(f"nothing is pending for {name}; engramfs pending list {name} --all shows what was")
    if len(found) > 1:
        numbers = ", ".join(str(each.number) for each in found)
        raise UsageError(f"which one? open for {name} are {numbers}")
    return store, found[0]
