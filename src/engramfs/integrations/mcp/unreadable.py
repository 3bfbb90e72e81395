"""What the SDK cannot read as a message is answered all the same: a client waits for an answer.

The SDK drops a line that is no JSON to it, such as one with half of a surrogate pair (what JavaScript makes
of an emoji that was cut) or one that is nested too deeply.
"""

import contextlib
import re
from collections.abc import AsyncIterator
from typing import Any

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

Identifier = int | str | None

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]|-?\d+')


@contextlib.asynccontextmanager
async def answered(read_stream: Any, write_stream: Any) -> AsyncIterator[Any]:
    """The stream of what can be read. What cannot gets an error on `write_stream`."""
    send, receive = anyio.create_memory_object_stream[SessionMessage](0)

    async def forward() -> None:
        # These say that the server has ended.
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            async with send:
                async for item in read_stream:
                    if not isinstance(item, Exception):
                        await send.send(item)
                    elif (answer := _answer(item)) is not None:
                        await write_stream.send(SessionMessage(answer))

    async with anyio.create_task_group() as tasks, receive:
        tasks.start_soon(forward)
        yield receive
        tasks.cancel_scope.cancel()


def _answer(error: Exception) -> types.JSONRPCError | None:
    """The answer to a line that made the SDK raise `error`; None for what is no request."""
    code, identifier, why = types.PARSE_ERROR, None, str(error)
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        why = str(first["msg"])
        if first["type"] == "json_invalid":
            line = str(first["input"])
            identifier = _identifier(line)
            if "hex escape" in why and _SURROGATE.search(line):
                why += r"; \ud83d, say, is half of a character without the other half"
        else:
            code = types.INVALID_REQUEST
            whole = next((each["input"] for each in error.errors() if isinstance(each["input"], dict)), {})
            if "method" in whole and "id" not in whole:
                return None
            found = whole.get("id")
            identifier = found if isinstance(found, int | str) else None
    said = types.ErrorData(code=code, message=f"the message cannot be read: {why}")
    return types.JSONRPCError(jsonrpc="2.0", id=identifier, error=said)


def _identifier(line: str) -> Identifier:
    """The id of the request that `line` may be meant for."""
    depth, is_next = 0, False
    for match in _TOKEN.finditer(line):
        token = match[0]
        if is_next and token not in "{}[]":
            return token[1:-1] if token.startswith('"') else int(token)
        depth += (token in "{[") - (token in "}]")
        is_next = depth == 1 and token == '"id"'
    return None
