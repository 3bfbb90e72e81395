"""`engramfs run -- CMD`: CMD in a mount namespace of its own, with a session attached; closes it after."""

import contextlib
import os
import pickle
import signal
from collections.abc import Callable
from typing import Any, NoReturn

import click

from engramfs.cli import attaching
from engramfs.cli.command import Command
from engramfs.cli.identity import identity_options
from engramfs.cli.invocation import Invocation, pass_invocation
from engramfs.errors import EngramError, NoDaemon, NotFound, Unanswered

BY_SIGNAL = 128  # added to the number of the signal that ended the command, as shells do
_FORWARDED = {
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGALRM,
    signal.SIGWINCH,
}
_FROM_KERNEL = 128  # si_code of a signal that a terminal sends to every process in its foreground


@click.command(
    "run",
    cls=Command,
    short_help="Run a command with a session.",
    context_settings={"allow_interspersed_args": False},
)
@identity_options
@click.option("--over", is_flag=True, help="Cover files that are at the mount points, for CMD alone.")
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- CMD...")
@click.pass_context
@pass_invocation
def command(
    invocation: Invocation,
    context: click.Context,
    agent: str | None,
    actor: str | None,
    tenant: str | None,
    over: bool,
    words: tuple[str, ...],
) -> None:
    """Run CMD in a mount namespace of its own with a new session attached at /, and close it after.

    The exit code is that of CMD. It begins in the current directory, or in / where that is not there for it.
    The hub, other sessions and the daemon's directories are out of sight. This
    keeps programs apart that mean no harm: root can leave any mount namespace, so put what you do not trust
    into a container and attach the session to that.
    """
    attaching.require_privilege()
    session, child = _start(invocation, {"agent": agent, "actor": actor, "tenant": tenant}, words, over=over)
    try:
        code = _wait(child)
    finally:
        try:
            invocation.client.call("session.close", id=session)
        except (NoDaemon, NotFound, Unanswered) as error:
            invocation.output.note(f"engramfs: the session is not closed: {error.message}")
    context.exit(code)


def _start(
    invocation: Invocation, identity: dict[str, Any], words: tuple[str, ...], *, over: bool
) -> tuple[str, int]:
    """The session's id, and the process that has become the command. Raises what was in the way."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _become(invocation, identity, words, writing, over=over)
    os.close(writing)
    told: list[Any] = []
    try:
        with open(reading, "rb") as answers, contextlib.suppress(EOFError):
            while True:  # until the command is executed, which closes the other end
                told.append(pickle.load(answers))
        session, failure = _understood(told)
        if failure is None:
            return session, child
        raise failure
    except BaseException:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        if told and isinstance(told[0], str):
            invocation.client.call("session.close", id=told[0])
        raise


def _understood(told: list[Any]) -> tuple[str, BaseException | None]:
    """The session's id and what went wrong, from what the child told: the one, then perhaps the other."""
    if told and isinstance(told[-1], BaseException):
        return "", told[-1]
    if not told:
        return "", EngramError("the command could not be started: its process ended too early")
    return told[0], None


def _become(
    invocation: Invocation, identity: dict[str, Any], words: tuple[str, ...], answers: int, *, over: bool
) -> NoReturn:
    """In the child: enter a mount namespace, attach a session, and become the command."""
    try:
        _attach(invocation, identity, lambda session: _tell(answers, session), over=over)
        _execute(words)
    except BaseException as error:
        _tell(answers, error)
    finally:
        os._exit(1)


def _tell(answers: int, what: object) -> None:
    os.write(answers, pickle.dumps(what))


def _attach(
    invocation: Invocation, identity: dict[str, Any], opened: Callable[[str], None], *, over: bool
) -> None:
    from engramfs.mount import sandbox
    from engramfs.mount.attach import attach_session
    from engramfs.mount.place import Place, namespace_of, start_of

    client, waiting = invocation.client, os.getppid()
    daemon = client.call("ping")
    hub, run = attaching.hub_point(invocation), os.path.realpath(invocation.locations.run)
    working = _working_directory()
    sandbox.leave()
    place = Place("/", namespace_of("self"), waiting, start_of(waiting))
    session = client.call("session.open", **identity, place=attaching.document_of(place))
    opened(session["id"])
    paths = attach_session(hub, daemon["pid"], "/", attaching.mount_plans(session), over=over)
    _enter(working)
    sandbox.hide(paths, [run, os.path.realpath(daemon["state"])])


def _working_directory() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:  # it was removed
        return "/"


def _enter(directory: str) -> None:
    """Look the working directory up again: the mounts that have just been made may be in its place."""
    try:
        os.chdir(directory)
    except OSError:
        os.chdir("/")


class CannotRun(EngramError):
    """The command is there, and cannot be executed."""

    exit_code = 126


class NoSuchCommand(CannotRun):
    """There is no such command."""

    exit_code = 127


def _execute(words: tuple[str, ...]) -> NoReturn:
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores, and a program would inherit that
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(words[0], list(words))
    except OSError as error:
        kind = NoSuchCommand if isinstance(error, FileNotFoundError) else CannotRun
        raise kind(f"cannot run {words[0]}: {error.strerror}") from None


def _wait(child: int) -> int:
    """Pass signals on until the command ends; its exit code, as a shell gives it."""
    watched = {*_FORWARDED, signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else BY_SIGNAL - code
        received = signal.sigwaitinfo(watched)
        if received.si_signo != signal.SIGCHLD and received.si_code != _FROM_KERNEL:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, received.si_signo)
