"""`engramfs search QUERY`: files by keywords and by meaning."""

from typing import TYPE_CHECKING

import click

from engramfs.cli.arguments import complete_stores, parse_since
from engramfs.cli.command import Command
from engramfs.cli.invocation import Invocation, pass_invocation
from engramfs.model.names import check_store_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engramfs.search import Found, Kind
    from engramfs.search.indexer import Step

_PATIENCE = 3600.0  # seconds: a person sees the progress and may end it


@click.command("search", cls=Command, short_help="Find files by words and by meaning.")
@click.argument("words", metavar="QUERY...", nargs=-1, required=True)
@click.option(
    "--store",
    "stores",
    multiple=True,
    metavar="STORE",
    type=check_store_name,
    shell_complete=complete_stores,
    help="Only in this store; may be given more than once.",
)
@click.option("--session", "session", metavar="ID", help="Only what this session sees.")
@click.option(
    "--kind",
    type=click.Choice(["keyword", "semantic", "hybrid"]),
    help="By words, by meaning, or both (the default where meaning is installed).",
)
@click.option("--category", metavar="NAME", help="Only records of this category.")
@click.option("--since", metavar="TIME", help="Only what was updated since: a time, or 2d.")
@click.option(
    "-n", "--number", "limit", type=click.IntRange(1, 1000), default=10, metavar="N", help="At most N files."
)
@pass_invocation
def command(
    invocation: Invocation,
    /,
    words: tuple[str, ...],
    stores: tuple[str, ...],
    session: str | None,
    kind: "Kind | None",
    category: str | None,
    since: str | None,
    limit: int,
) -> None:
    """Find files in the heads of all stores, best first; with --session, in what that session sees.

    QUERY holds words, identifiers or a question; words of Chinese, Japanese and Korean are found too.
    """
    from engramfs.search import Query

    query = Query(
        " ".join(words),
        limit=limit,
        kind=kind,
        category=category,
        since=parse_since(since) if since is not None else None,
        patience=_PATIENCE,
    )
    with invocation.opened() as client, invocation.output.activity("Indexing:") as say:

        def progress(step: "Step") -> None:
            say(f"{step.files:,} files, then {step.passages:,} passages by their meaning")

        where = client.session(session) if session is not None else client
        answer = where.search(query, stores, progress)
    for notice in answer.notices:
        invocation.output.note(f"engramfs: {notice}")
    _print(invocation, answer.found)


def _print(invocation: Invocation, found: "Sequence[Found]") -> None:
    from engramfs.model.times import format_time

    if invocation.json:
        invocation.output.document([_document(one) for one in found])
        return
    for one in found:
        how = "+".join(one.matched)
        at = f"@{one.version}" if one.version else ""
        invocation.output.line(
            (f"{one.store}{at}:{one.path}", "bold"),
            f"line {one.line}",
            (how, "cyan"),
            one.category or "",
            ("" if one.version else "waits for approval", "yellow"),
            (format_time(one.updated)[:10], "green"),
        )
        invocation.output.line(f"    {one.snippet}")


def _document(one: "Found") -> dict[str, object]:
    import msgspec

    from engramfs.model.times import format_time

    document: dict[str, object] = msgspec.to_builtins(one)
    if not one.version:
        document |= {"version": None, "pending": True}
    return document | {"created": format_time(one.created), "updated": format_time(one.updated)}
