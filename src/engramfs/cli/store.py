"""`engramfs store …`: the stores as a whole."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click
import msgspec

from engramfs.cli import offline
from engramfs.cli.arguments import complete_stores, now, store_argument
from engramfs.cli.command import LazyGroup
from engramfs.cli.invocation import Invocation, pass_invocation
from engramfs.errors import UsageError
from engramfs.model.quantities import format_size, parse_size

if TYPE_CHECKING:
    from engramfs.client import StoreInfo
    from engramfs.history.repository import Repository

Document = dict[str, Any]
_COUNT = click.IntRange(min=0)


@click.group("store", cls=LazyGroup, short_help="Create, list and change stores.")
def command() -> None:
    """Create, list, describe and change stores."""


def limit_options(function: Callable[..., None]) -> Callable[..., None]:
    """The options that `create` and `set` share.

    A version stays while either of the two rules of `gc` keeps it; without a rule all stay.
    """
    for option in (
        click.option(
            "--secrets", type=click.Choice(["flag", "refuse"]), help="On writes that look like a secret."
        ),
        click.option("--conflicts", type=click.Choice(["keep", "refuse"]), help="On concurrent writes."),
        click.option("--keep-versions", type=_COUNT, metavar="N", help="gc keeps the newest N versions."),
        click.option("--keep-days", type=_COUNT, metavar="N", help="gc keeps the versions of N days."),
        click.option("--quota", type=parse_size, metavar="SIZE", help="Of all files together."),
        click.option("--max-file-size", type=parse_size, metavar="SIZE", help="Of one file."),
        click.option("--description", metavar="TEXT", help="What the store is for."),
    ):
        function = option(function)
    return function


@command.command("create")
@store_argument
@limit_options
@pass_invocation
def create(invocation: Invocation, /, name: str, **options: Any) -> None:
    """Create STORE, like contexts/handbook."""
    given = _given(options)
    configuration = invocation.configuration()

    def alone(repository: "Repository") -> Document:
        from engramfs.daemon import stores

        limits = configuration.store_limits()
        return stores.create(repository, limits, name=name, now=now(), **given)

    _change(invocation, "store.create", {"name": name, **given}, alone, "created {name}")


@command.command("list")
@click.argument("prefix", default="", shell_complete=complete_stores)
@pass_invocation
def list_stores(invocation: Invocation, prefix: str) -> None:
    """List the stores, or those whose name begins with PREFIX."""
    with invocation.opened() as client:
        stores = client.stores(prefix)
    if invocation.json:
        invocation.output.document([msgspec.to_builtins(store) for store in stores])
    elif not stores:
        invocation.output.note("no stores; engramfs store create contexts/handbook makes one")
    else:
        _print_list(invocation, stores)


def _print_list(invocation: Invocation, stores: "list[StoreInfo]") -> None:
    rows = [
        (
            (store.name, "cyan"),
            str(store.version),
            f"{store.files:,}",
            format_size(store.used),
            format_size(store.quota),
            "archived" if store.archived else "",
            store.description,
        )
        for store in stores
    ]
    headers = ["STORE", "VERSION", "FILES", "SIZE", "QUOTA", "STATE", "DESCRIPTION"]
    invocation.output.table(headers, rows, right="VERSION FILES SIZE QUOTA")


@command.command("show")
@store_argument
@pass_invocation
def show(invocation: Invocation, name: str) -> None:
    """Describe the store NAME."""
    with invocation.opened() as client:
        document: Document = msgspec.to_builtins(client.store(name))
    if invocation.json:
        invocation.output.document(document)
        return
    sizes = {key: format_size(document[key]) for key in ("used", "max_file_size", "quota")}
    for key, value in (document | sizes | {"archived": "yes" if document["archived"] else "no"}).items():
        invocation.output.line((f"{key.replace('_', ' '):<14}", "cyan"), str(value))


@command.command("set")
@store_argument
@limit_options
@click.option("--archived/--no-archived", default=None, help="Close it to new versions, or open it again.")
@pass_invocation
def set_store(invocation: Invocation, /, name: str, archived: bool | None, **options: Any) -> None:
    """Change what is set for STORE."""
    given = _given(options)
    if not given and archived is None:
        raise UsageError("nothing to set; name at least one option, see engramfs store set --help")
    if archived is not None:
        _archive(invocation, name, archived, quiet=bool(given))
    if given:

        def alone(repository: "Repository") -> Document:
            from engramfs.daemon import stores

            return stores.change(repository, name=name, **given)

        _change(invocation, "store.set", {"name": name, **given}, alone, "changed {name}")


@command.command("archive")
@store_argument
@pass_invocation
def archive(invocation: Invocation, name: str) -> None:
    """Close the store NAME to new versions; it stays readable."""
    _archive(invocation, name, archived=True)


def _archive(invocation: Invocation, name: str, archived: bool, *, quiet: bool = False) -> None:
    def alone(repository: "Repository") -> Document:
        from engramfs.daemon import stores

        return stores.archive(repository, name=name, archived=archived)

    done = "archived {name}" if archived else "opened {name} again"
    params = {"name": name, "archived": archived}
    _change(invocation, "store.archive", params, alone, None if quiet else done)


@command.command("delete")
@store_argument
@click.option("--yes", is_flag=True, help="Say that you mean it.")
@pass_invocation
def delete(invocation: Invocation, name: str, yes: bool) -> None:
    """Delete the store NAME with every version of it."""
    if not yes:
        raise UsageError(f"deleting {name} removes every version of it for good; add --yes if you mean it")

    def alone(repository: "Repository") -> Document:
        from engramfs.daemon import stores

        return stores.delete(repository, name=name)

    _change(invocation, "store.delete", {"name": name}, alone, "deleted {name}")


def _given(options: Document) -> Document:
    return {key: value for key, value in options.items() if value is not None}


def _change(
    invocation: Invocation,
    method: str,
    params: Document,
    alone: Callable[["Repository"], Document],
    done: str | None,
) -> None:
    """Change a store, by the daemon or alone, and say so (unless `done` is None)."""

    purpose = f"engramfs {method.replace('.', ' ')}"
    document = offline.write(invocation, purpose, lambda: invocation.client.call(method, **params), alone)
    if done is None:
        return
    if invocation.json:
        invocation.output.document(document)
    else:
        invocation.output.line((done.format(name=params["name"]), "green"))
