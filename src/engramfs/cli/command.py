"""Groups that load their commands lazily, and commands that take the global options anywhere."""

import importlib
import sys
from collections.abc import Mapping
from typing import Any

import click

from engramfs.cli.invocation import Invocation


class ReaderGone(Exception):
    """Whoever read our output wants no more of it."""


def _keep(context: click.Context, option: click.Parameter, value: object) -> None:
    """Note a global option on the invocation, which every context of one command line shares."""
    if value and option.name:
        setattr(context.ensure_object(Invocation), option.name, value)


def _global_options(*, hidden: bool) -> list[click.Parameter]:
    def option(name: str, help_text: str, **settings: Any) -> click.Option:
        return click.Option(
            [name],
            help=help_text,
            callback=_keep,
            expose_value=False,
            is_eager=True,
            hidden=hidden,
            **settings,
        )

    return [
        option("--state", "Where the stores are kept.", metavar="DIR"),
        option("--run", "Where the daemon's socket and mount are.", metavar="DIR"),
        option("--config", "The configuration file.", metavar="FILE"),
        option("--json", "Print JSON, errors too.", is_flag=True),
    ]


class Command(click.Command):
    """A command after whose name the global options are accepted too."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.params = [*self.params, *_global_options(hidden=True)]


class LazyGroup(click.Group):
    """A group whose commands are named by module: `{"log": "engramfs.cli.log"}`.

    A module's `command` is the command. With `root`, the global options are shown in its help.
    """

    command_class = Command

    def __init__(
        self, *args: Any, modules: Mapping[str, str] | None = None, root: bool = False, **settings: Any
    ) -> None:
        super().__init__(*args, **settings)
        self._modules = modules or {}
        self.params = [*self.params, *_global_options(hidden=not root)]

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self._modules, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        module = self._modules.get(cmd_name)
        if module is None:
            return super().get_command(ctx, cmd_name)
        command = importlib.import_module(module).command
        assert isinstance(command, click.Command)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command and hand on what it printed; click would end a broken pipe with exit code 1."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            raise ReaderGone from None
        return result

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, but an unknown command names the nearest known one."""
        name = args[0]
        if self.get_command(ctx, name) is None and not ctx.resilient_parsing and not name.startswith("-"):
            import difflib

            close = difflib.get_close_matches(name, self.list_commands(ctx), n=1)
            hint = f" (did you mean {close[0]}?)" if close else ""
            raise click.UsageError(f"there is no command {name!r}{hint}", ctx)
        return super().resolve_command(ctx, args)
