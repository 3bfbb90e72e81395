"""JSON-RPC 2.0 messages, one a line, and errors as they cross the control socket.

An `EngramError` travels as `{"code": -32000 - exit_code, "message": …, "data": {"code": cls.code}}` and
is raised again on the other side as the same class; a `PosixError` carries its `errno` too, since its
subclasses differ only in that. Everything else that goes wrong in a handler is `INTERNAL_ERROR`.

The standard library's `json` is used on purpose: paths hold lone surrogates (bytes that are not UTF-8),
which it writes as escapes and reads back.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from engramfs.errors import EngramError, PosixError, UsageError

MAX_REQUEST = 16 << 20  # bytes of one line from a client: a call with 20 files, escaped, and room
PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
_OURS = -32000

Identifier = int | str | None


@dataclass(frozen=True)
class Request:
    """`identifier` is None for a notification, which gets no answer."""

    method: str
    params: dict[str, object]
    identifier: Identifier = None


class InvalidMessage(UsageError):
    """A line that is no request, with the error code that JSON-RPC has for it."""

    code = "invalid_message"

    def __init__(self, message: str, rpc_code: int = INVALID_REQUEST, identifier: Identifier = None) -> None:
        super().__init__(message)
        self.rpc_code = rpc_code
        self.identifier = identifier


def encode(message: object) -> bytes:
    """One line. Raises `TypeError` and `ValueError` for what is not JSON."""
    return json.dumps(message, separators=(",", ":"), default=_as_builtins).encode() + b"\n"


def _as_builtins(value: object) -> object:
    import msgspec  # which takes longer to import than most requests of the command line

    return msgspec.to_builtins(value)


def request(identifier: int, method: str, params: dict[str, object]) -> bytes:
    return encode({"jsonrpc": "2.0", "id": identifier, "method": method, "params": params})


def notification(method: str, params: dict[str, object]) -> bytes:
    return encode({"jsonrpc": "2.0", "method": method, "params": params})


def result(identifier: Identifier, value: object) -> bytes:
    return encode({"jsonrpc": "2.0", "id": identifier, "result": value})


def failure(identifier: Identifier, error: BaseException) -> bytes:
    return encode({"jsonrpc": "2.0", "id": identifier, "error": error_object(error)})


def decode(line: bytes) -> dict[str, object]:
    """Any message. Raises `InvalidMessage`."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidMessage(f"not JSON: {error}", PARSE_ERROR) from None
    if not isinstance(message, dict):
        raise InvalidMessage("not a JSON-RPC object; send one object a line")
    return message


def decode_request(line: bytes) -> Request:
    """A request or a notification. Raises `InvalidMessage`."""
    message = decode(line)
    identifier = message.get("id")
    if identifier is not None and (isinstance(identifier, bool) or not isinstance(identifier, int | str)):
        raise InvalidMessage("the id is neither a number nor a string")
    method, params = message.get("method"), message.get("params", {})
    if message.get("jsonrpc") != "2.0" or not isinstance(method, str):
        raise InvalidMessage("a request has jsonrpc 2.0 and a method", identifier=identifier)
    if not isinstance(params, dict):
        raise InvalidMessage("params is an object of named values", INVALID_PARAMS, identifier)
    return Request(method, params, identifier)


def error_object(error: BaseException) -> dict[str, object]:
    """What an error looks like on the wire."""
    error = sole_error(error)
    if isinstance(error, InvalidMessage):
        return {"code": error.rpc_code, "message": error.message, "data": {"code": error.code}}
    if not isinstance(error, EngramError):
        return {
            "code": INTERNAL_ERROR,
            "message": f"internal error: {type(error).__name__}: {error}; the daemon's log has the traceback",
            "data": {"code": EngramError.code},
        }
    data: dict[str, object] = {"code": error.code}
    if isinstance(error, PosixError):
        data["errno"] = error.errno
    if error.details:
        data["details"] = error.details
    return {"code": _OURS - error.exit_code, "message": error.message, "data": data}


def sole_error(error: BaseException) -> BaseException:
    """The one error inside of groups that trio's nurseries wrapped it in."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def error_from(value: object) -> EngramError:
    """The exception to raise for an `error` that came over the wire."""
    if not isinstance(value, dict):
        return EngramError("the daemon answered an error without a reason")
    message, data = str(value.get("message", "")), value.get("data")
    data = data if isinstance(data, dict) else {}
    details = data.get("details")
    details = details if isinstance(details, dict) else {}
    for kind in _classes(EngramError):
        if kind.code == data.get("code") and (
            kind.code != PosixError.code or kind.errno == data.get("errno")
        ):
            return kind(message, **details)
    return EngramError(message)


def _classes(root: type[EngramError]) -> Iterator[type[EngramError]]:
    yield root
    for kind in root.__subclasses__():
        yield from _classes(kind)
