"""`engramfs pending …`: what waits for a person, and the decisions on it."""

from typing import TYPE_CHECKING

import click

from engramfs.cli.arguments import reason_option, store_argument
from engramfs.cli.command import LazyGroup
from engramfs.cli.invocation import Invocation, pass_invocation
from engramfs.cli.pager import no_pager, paged
from engramfs.cli.patches import binary_option
from engramfs.errors import NotFound, UsageError
from engramfs.model.names import raw

if TYPE_CHECKING:
    from engramfs.client import Client
    from engramfs.model.pending import Pending
    from engramfs.model.store import Store
    from engramfs.storage.protocol import Reader


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
    from engramfs.cli.pending_printing import print_list

    with invocation.opened() as client, client.reading() as reader:
        print_list(invocation, reader, _named(reader, name), every=every)


@command.command("show")
@store_argument
@number_argument
@click.argument("path", required=False)
@pass_invocation
def show(invocation: Invocation, /, name: str, number: int | None, path: str | None) -> None:
    """Show a pending version of STORE and its changes; with PATH the file or directory as it would be."""
    from engramfs.cli.pending_printing import print_one, print_path

    with invocation.opened() as client, client.reading() as reader:
        store, pending = _find(reader, name, number)
        if path is None:
            print_one(invocation, reader, store, pending)
        else:
            print_path(invocation, reader, pending, raw(path).strip(b"/"))


@command.command("diff")
@store_argument
@number_argument
@click.argument("path", required=False)
@click.option("--stat", is_flag=True, help="Only how many lines come and go in each file.")
@binary_option
@no_pager
@pass_invocation
def diff(
    invocation: Invocation,
    /,
    name: str,
    number: int | None,
    path: str | None,
    stat: bool,
    binary: bool,
    no_pager: bool,
) -> None:
    """Show what a pending version of STORE would change, against what it was made from."""
    from engramfs.cli.pending_printing import print_differences

    with (
        invocation.opened() as client,
        paged(invocation, unless=no_pager),
        client.reading() as reader,
    ):
        _, pending = _find(reader, name, number)
        print_differences(invocation, reader, pending, raw(path or "").strip(b"/"), stat=stat, binary=binary)


@command.command("approve")
@store_argument
@number_argument
@click.option("--reason", default="", metavar="TEXT", help="Becomes part of the version's message.")
@click.option("--merge", is_flag=True, help="Merge texts that changed or were renamed meanwhile.")
@pass_invocation
def approve(invocation: Invocation, /, name: str, number: int | None, reason: str, merge: bool) -> None:
    """Let a pending version become a version of STORE, by its author.

    Refused (exit code 4), naming the paths, when one of them is not what it was when the change was made.
    """
    with invocation.opened() as client:
        document = client.approve(name, _number(client, name, number), reason, merge=merge)
    if invocation.json:
        invocation.output.document(document)
    else:
        became = f"is {name}@{document['result']}"
        if document["unchanged"]:
            became = f"of {name}; nothing was left to change"
        invocation.output.line(("approved", "green"), f"pending {document['number']} {became}")


@command.command("reject")
@store_argument
@number_argument
@reason_option("Told to the session, and kept.")
@pass_invocation
def reject(invocation: Invocation, /, name: str, number: int | None, reason: str) -> None:
    """Let a pending version be. It stays readable, and the session that made it does not see it any more."""
    with invocation.opened() as client:
        document = client.reject(name, _number(client, name, number), reason)
    if invocation.json:
        invocation.output.document(document)
    else:
        stays = "; its session sees it until what builds on it is decided" if document["kept"] else ""
        invocation.output.line(("rejected", "red"), f"pending {document['number']} of {name}{stays}")


def _number(client: "Client", name: str, number: int | None) -> int:
    """That of the pending version that is meant."""
    with client.reading() as reader:
        return _find(reader, name, number)[1].number


def _named(reader: "Reader", name: str) -> "Store":
    from engramfs.history import catalog

    return catalog.named(reader, name)


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
