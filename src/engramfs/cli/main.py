"""The root command, and how a run of it ends: exit codes, and errors of one line."""

import contextlib
import json
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from engramfs.cli.command import LazyGroup, ReaderGone
from engramfs.errors import EngramError, UsageError

TRACEBACK = "ENGRAMFS_TRACEBACK"  # an environment variable, for who looks for a bug
INTERRUPTED = 130
BROKEN_PIPE = 141  # as a process that SIGPIPE ended

MODULES = {
    name: f"engramfs.cli.{module}"
    for name, module in {
        "up": "up",
        "down": "down",
        "run": "run",
        "session": "session",
        "attach": "attach",
        "detach": "detach",
        "switch": "switch",
        "deploy": "deploy",
        "status": "status",
        "store": "store",
        "import": "importing",
        "export": "exporting",
        "log": "log",
        "search": "search",
        "show": "show",
        "diff": "diff",
        "blame": "blame",
        "tree": "tree",
        "pending": "pending",
        "restart": "restart",
        "restore": "restore",
        "revert": "revert",
        "note": "note",
        "redact": "redact",
        "forget": "forget",
        "gc": "gc",
        "stat": "stat",
        "verify": "verify",
        "doctor": "doctor",
        "backup": "backup",
        "restore-backup": "restore_backup",
        "mount": "mount",
        "mcp": "mcp",
        "prompt": "prompt",
        "claims": "claims",
        "daemon": "daemon",
        "oci-hook": "oci_hook",
        "docker-plugin": "docker_plugin",
        "completion": "completion",
        "version": "version",
    }.items()
}


@click.group(
    cls=LazyGroup,
    modules=MODULES,
    root=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="STORE@N names a version, STORE@N:PATH a file in it. "
    "The options above are accepted after a command too.",
)
def root() -> None:
    """Memory of AI agents as versioned directories."""


def main() -> NoReturn:
    """The entry point of `engramfs`."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command line; returns its exit code, having said on stderr what failed."""
    _prepare_streams()
    as_json = "--json" in arguments
    try:
        code = root.main(list(arguments), "engramfs", standalone_mode=False, color=_colour())
        return code if isinstance(code, int) else 0
    except EngramError as error:
        return _failed(error.message, error.code, error.exit_code, as_json)
    except click.Abort:
        return INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as error:
        return _helped(error)
    except click.ClickException as error:
        return _failed(_usage_message(error), UsageError.code, UsageError.exit_code, as_json)
    except ReaderGone:
        _discard_stdout()
        return BROKEN_PIPE
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _failed(f"{where}{error.strerror or error}", EngramError.code, EngramError.exit_code, as_json)
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        message = (
            f"internal error: {type(error).__name__}: {error}; {TRACEBACK}=1 shows where, please report it"
        )
        return _failed(message, EngramError.code, EngramError.exit_code, as_json)


def _prepare_streams() -> None:
    """File names hold any bytes, and stdout has to carry them."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError):
            stream.reconfigure(errors="surrogateescape")  # type: ignore[union-attr]


def _colour() -> bool | None:
    """False when the person wants none (no-color.org); None lets click look for a terminal."""
    return False if os.environ.get("NO_COLOR") else None


def _helped(error: click.exceptions.NoArgsIsHelpError) -> int:
    """Who gives no command is shown which there are, to read or to pipe; a script still sees a failure."""
    assert error.ctx is not None
    click.echo(error.ctx.get_help(), color=_colour())
    return UsageError.exit_code


def _usage_message(error: click.ClickException) -> str:
    message = error.format_message().rstrip(".")
    message = message[:1].lower() + message[1:]
    context = error.ctx if isinstance(error, click.UsageError) else None
    return f"{message}; {context.command_path} --help shows how" if context else message


def _failed(message: str, code: str, exit_code: int, as_json: bool) -> int:
    message = " ".join(message.split())
    if as_json:
        click.echo(json.dumps({"code": code, "message": message}), err=True)
    else:
        click.echo(click.style("engramfs:", fg="red") + f" {message}", err=True, color=_colour())
    return exit_code


def _discard_stdout() -> None:
    """Let the interpreter's last flush of a closed pipe go nowhere instead of complaining."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
