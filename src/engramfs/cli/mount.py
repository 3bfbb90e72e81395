"""`engramfs mount DIR`: one session's tree at a directory, with neither daemon nor root."""

import click

from engramfs.cli.arguments import must_be_directory
from engramfs.cli.command import Command
from engramfs.cli.identity import identity_options
from engramfs.cli.invocation import Invocation, pass_invocation


@click.command("mount", cls=Command, short_help="Serve one session, without root.")
@click.argument("directory", type=click.Path(readable=False), metavar="DIR")
@identity_options
@click.option("--over", is_flag=True, help="Cover the files that are in DIR.")
@click.pass_context
@pass_invocation
def command(
    invocation: Invocation,
    context: click.Context,
    directory: str,
    agent: str | None,
    actor: str | None,
    tenant: str | None,
    over: bool,
) -> None:
    """Serve one session at DIR through fusermount3, in the foreground; no daemon, no root.

    A worker that crashes is replaced, and who uses DIR does not notice.
    """
    from engramfs.daemon.scoping import memory_store

    configuration = invocation.configuration()
    agent_config = configuration.agent(agent)
    memory_store(agent_config, agent_config.name, actor, tenant)
    directory = must_be_directory(directory)
    from engramfs.daemon import single

    context.exit(
        single.run(
            invocation.locations,
            directory,
            agent=agent_config.name,
            actor=actor,
            tenant=tenant,
            over=over,
        )
    )
