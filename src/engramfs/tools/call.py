"""A tool, and a call of it: arguments checked by a struct, errors answered with a code and no traceback."""

import errno
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from engramfs import telemetry
from engramfs.errors import EngramError, PosixError, UsageError

Answer = dict[str, Any] | str
Arguments = TypeVar("Arguments", bound=msgspec.Struct)


def _message(error: EngramError) -> str:
    return error.message or type(error).__name__


_POSIX = {errno.EFBIG: "too_large", errno.EDQUOT: "too_large", errno.EOPNOTSUPP: "unsupported"}


class Tool(msgspec.Struct, frozen=True):
    """`arguments` is the struct of what it takes, and `run` gets one.

    `writes` says whether it changes anything, `plain` that its errors are read by models as they are, and
    `told` what is said of an error.
    """

    name: str
    description: str
    arguments: type[msgspec.Struct]
    run: Callable[[Any], Answer]
    writes: bool = False
    plain: bool = False
    told: Callable[[EngramError], str] = _message

    def schema(self) -> dict[str, Any]:
        """The JSON schema of the arguments: an object at the top, as the protocol wants it."""
        (schema,), parts = msgspec.json.schema_components([self.arguments], ref_template="#/$defs/{name}")
        own: dict[str, Any] = parts.pop(self.arguments.__name__, schema)
        own.pop("description", None)
        for part in parts.values():
            part.pop("title", None)
        own.pop("title", None)
        return own | ({"$defs": parts} if parts else {})


class Failure(msgspec.Struct, frozen=True):
    """A call that was refused or went wrong, as the agent hears of it."""

    code: str
    message: str
    details: dict[str, Any] = {}


def call(tool: Tool, arguments: Mapping[str, Any]) -> Answer | Failure:
    """Run a tool. Nothing is raised: what goes wrong is a `Failure`."""
    try:
        return tool.run(converted(arguments, tool.arguments))
    except EngramError as error:
        return Failure(code_of(error), tool.told(error), dict(error.details))
    except Exception:
        telemetry.logger("tools").exception("a tool failed", tool=tool.name)
        return Failure("failed", f"{tool.name} failed; the log of this process has the traceback")


def converted(arguments: Mapping[str, Any], kind: type[Arguments]) -> Arguments:
    """The struct of a tool's arguments. Raises `UsageError`."""
    try:
        return msgspec.convert(dict(arguments), kind)
    except msgspec.ValidationError as error:
        raise UsageError(f"wrong arguments: {error}") from error


def code_of(error: EngramError) -> str:
    """The code under which an agent hears of an error."""
    if isinstance(error, PosixError):
        return _POSIX.get(error.errno, "failed")
    return error.code
