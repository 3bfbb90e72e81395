"""What a method of the control socket is asked: its parameters as a struct."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec

from engramfs.daemon.control import Handler, Notify, Peer
from engramfs.errors import UsageError

Request = TypeVar("Request", bound=msgspec.Struct)


def taking(request: type[Request], method: Callable[[Request, Peer], Awaitable[object]]) -> Handler:
    """The handler that gives `method` its parameters as a `request`."""

    async def handler(params: dict[str, object], peer: Peer, _notify: Notify) -> object:
        try:
            decoded = msgspec.convert(params, request)
        except msgspec.ValidationError as error:
            raise UsageError(f"wrong parameters: {error}") from error
        return await method(decoded, peer)

    return handler
