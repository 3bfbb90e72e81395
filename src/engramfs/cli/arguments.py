"""Arguments that several commands take: stores, references to versions, directories."""

import errno
import os
import stat
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from engramfs.cli.invocation import Invocation
from engramfs.errors import EngramError, UsageError
from engramfs.model.names import check_store_name, raw

if TYPE_CHECKING:
    from engramfs.model.reference import Reference
    from engramfs.storage.protocol import Reader


def complete_stores(context: click.Context, _argument: click.Parameter, prefix: str) -> list[str]:
    """The stores whose names begin with `prefix`, for a shell, whose prompt an error would garble."""
    from engramfs.history import catalog
    from engramfs.history.repository import Repository

    locations = context.ensure_object(Invocation).locations
    try:
        with Repository.open(locations.state) as repository, repository.engine.reading() as reader:
            return [store.name for store in catalog.every(reader, prefix)]
    except EngramError:
        return []


def refer(reader: "Reader", text: str) -> "Reference":
    """What `text` refers to, given the stores there are. Raises `UsageError` and `InvalidName`."""
    from engramfs.history import catalog
    from engramfs.model.reference import parse_reference

    return parse_reference(text, lambda name: catalog.find(reader, name) is not None)


def with_path(reference: "Reference", path: str | None) -> "Reference":
    """`reference` with the path of a separate argument. Raises `UsageError` for two paths."""
    import msgspec

    if path is None:
        return reference
    if reference.path:
        raise UsageError("a path was given twice; write STORE PATH or STORE:PATH")
    return msgspec.structs.replace(reference, path=raw(path).strip(b"/"))


def parse_since(text: str) -> int:
    """Nanoseconds since 1970 of a moment, or of as long ago as a duration (`2d`) says.

    Raises `UsageError`.
    """
    from engramfs.model.quantities import parse_duration
    from engramfs.model.times import parse_time

    try:
        return now() - int(parse_duration(text) * 1e9)
    except UsageError:
        pass
    try:
        return parse_time(text)
    except UsageError:
        raise UsageError(
            f"{text!r} is no time and no duration; write it like 2025-11-30, 2025-11-30T09:05:01Z or 2d"
        ) from None


def must_be_directory(path: str) -> str:
    """`path`, absolute, if it is a directory, or the mount that a dead process left on one.

    Raises `UsageError`.
    """
    try:
        is_directory = stat.S_ISDIR(os.stat(path).st_mode)
    except OSError as error:
        is_directory = error.errno == errno.ENOTCONN
        if not is_directory:
            raise UsageError(f"{path}: {error.strerror}; give a directory") from error
    if not is_directory:
        raise UsageError(f"{path} is not a directory; give one")
    return os.path.abspath(path)


def now() -> int:
    """Nanoseconds since 1970: the clock of commands."""
    return time.time_ns()


def reason_option(help_text: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The option `--reason` of a command that has to say why."""
    return click.option("--reason", required=True, metavar="TEXT", callback=_stated, help=help_text)


def _stated(_context: click.Context, _option: click.Parameter, reason: str) -> str:
    if not reason.strip():
        raise UsageError("the reason is empty; say why with --reason TEXT")
    return reason


store_argument = click.argument(
    "name", metavar="STORE", type=check_store_name, shell_complete=complete_stores
)
reference_argument = click.argument("reference", metavar="STORE[@N][:PATH]", shell_complete=complete_stores)
