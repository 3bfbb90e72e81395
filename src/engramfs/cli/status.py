"""`engramfs status`: what the daemon serves, and what went wrong."""

import time
from collections.abc import Sequence
from typing import Any

import click

from engramfs.cli.command import Command
from engramfs.cli.invocation import Invocation, pass_invocation
from engramfs.cli.output import Output
from engramfs.errors import NoDaemon
from engramfs.model.quantities import format_size

_PATIENCE = 2.0  # seconds for the worker after one that crashed
_SESSION_COLUMNS = ("id", "agent", "actor", "tenant", "state", "places")


@click.command("status", cls=Command, short_help="What the daemon serves, what failed.")
@pass_invocation
def command(invocation: Invocation) -> None:
    """Show the daemon, its sessions, open batches, the journal and the last failures."""
    _wait_for_a_worker(invocation)
    status = invocation.client.call("status")
    if invocation.json:
        invocation.output.document(status)
    else:
        _print(invocation.output, status)


def _wait_for_a_worker(invocation: Invocation) -> None:
    """Raises `NoDaemon` with the last error when the keeper waits before it starts the next one."""
    from engramfs.daemon.run_directory import why_nobody_serves

    until = time.monotonic() + _PATIENCE
    while why := why_nobody_serves(invocation.locations.run):
        if time.monotonic() > until:
            raise NoDaemon(f"no worker serves now: {why}; see {invocation.locations.daemon_log}")
        time.sleep(0.05)


def _print(output: Output, status: dict[str, Any]) -> None:
    worker, journal = status["worker"], status["journal"]
    restarts = f"restarted {worker['restarts']} times" if worker["restarts"] else "never restarted"
    output.line(("worker  ", "cyan"), f"pid {worker['pid']}, since {worker['started']}, {restarts}")
    if worker.get("last_crash"):
        output.line(("crash   ", "red"), str(worker["last_crash"]))
    output.line(("mount   ", "cyan"), str(status["mount"]))
    size = format_size(journal["bytes"])
    output.line(("journal ", "cyan"), f"{journal['records']} records not sealed yet, a file of {size}")
    for notice in status["notices"]:
        output.line(("notice  ", "yellow"), str(notice))
    for title in ("sessions", "batches", "pending", "secrets", "failures"):
        rows = status[title]
        alarming = rows and title in ("secrets", "failures")
        output.line((f"{title:<8}", "red" if alarming else "cyan"), str(len(rows)))
        if title == "pending":
            rows = _by_store(rows)
        if rows:
            _print_rows(output, rows, _SESSION_COLUMNS if title == "sessions" else None)


def _by_store(pending: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What waits, a row for each store: how much, the newest, and how to see all of it."""
    found: dict[str, dict[str, Any]] = {}
    for one in pending:
        before = found.get(one["store"], {"waiting": 0, "number": 0})
        newest = one if one["number"] > before["number"] else before
        found[one["store"]] = {**newest, "waiting": before["waiting"] + 1}
    return [
        {
            "store": name,
            "waiting": last["waiting"],
            "newest": last["number"],
            "time": last["time"],
            "author": last["author"],
            "to list them": f"engramfs pending list {name}",
        }
        for name, last in found.items()
    ]


def _print_rows(output: Output, rows: Sequence[dict[str, Any]], columns: Sequence[str] | None) -> None:
    """A table of what the rows hold, or of `columns`; a list is shown by its length."""
    columns = columns or list(dict.fromkeys(key for row in rows for key in row))
    output.table(
        [column.replace("_", " ").upper() for column in columns],
        [[_shown(row.get(column)) for column in columns] for row in rows],
    )
    output.line("")


def _shown(value: object) -> str:
    if value is None:
        return ""
    return str(len(value)) if isinstance(value, list) else str(value)
