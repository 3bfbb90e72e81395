"""`engramfs deploy AGENT DIR`: the instructions and skills of an agent, as one version."""

import os
from typing import TYPE_CHECKING, Any

import click

from engramfs.cli import offline
from engramfs.cli.arguments import must_be_directory, now
from engramfs.cli.command import Command
from engramfs.cli.invocation import Invocation, pass_invocation
from engramfs.cli.versions import print_recorded

if TYPE_CHECKING:
    from engramfs.history.repository import Repository


@click.command("deploy", cls=Command, short_help="Update an agent's instructions and skills.")
@click.argument("agent", metavar="AGENT")
@click.argument("directory", type=click.Path(), metavar="DIR")
@click.option("-m", "--message", default="", metavar="TEXT", help="What this version is about.")
@pass_invocation
def command(invocation: Invocation, agent: str, directory: str, message: str) -> None:
    """Make instructions.md and skills/ in the store agents/AGENT what they are in DIR.

    Sessions that begin from now on see them at /instructions.md and /skills. Nothing else in the store is
    touched.
    """
    invocation.configuration().agent(agent)
    directory = must_be_directory(directory)

    def by_daemon() -> Any:
        return invocation.client.call(
            "deploy", agent=agent, directory=directory, message=message, timeout=600
        )

    def alone(repository: "Repository") -> Any:
        return _deploy(invocation, repository, agent, directory, message)

    document = offline.write(invocation, "engramfs deploy", by_daemon, alone)
    if invocation.json:
        invocation.output.document(document)
    else:
        print_recorded(invocation.output, f"agents/{agent}", document, "deployed")


def _deploy(
    invocation: Invocation, repository: "Repository", agent: str, directory: str, message: str
) -> dict[str, Any] | None:
    from engramfs.daemon import deploying
    from engramfs.history import commit, importing, log

    limits = invocation.configuration().store_limits()
    store, _ = deploying.make_store(repository, agent, limits, now())
    gathered = deploying.gather(repository, store, os.fsencode(directory))
    with repository.engine.reading() as reader:
        planned = importing.plan_gathered(
            reader, store, gathered, offline.person(), now(), message or f"deploy of {directory}"
        )
    version = repository.transact(lambda writer: commit.apply(writer, planned))
    return log.describe(version, planned.changes) if version else None
