"""The memory tool of the Anthropic SDK over a session. Needs the extra `engramfs[anthropic]`.

    with engramfs.Client() as client:
        tool = MemoryTool(client.open_session(agent="digest", actor="alice"))
        anthropic.beta.messages.tool_runner(…, tools=[tool])

Each command that changes something is one version of the actor's memory.
"""

from collections.abc import Callable

import anyio.to_thread
from anthropic.lib.tools import (
    BetaAbstractMemoryTool,
    BetaAsyncAbstractMemoryTool,
    BetaFunctionToolResultType,
    ToolError,
)
from anthropic.types.beta import (
    BetaCacheControlEphemeralParam,
    BetaMemoryTool20250818CreateCommand,
    BetaMemoryTool20250818DeleteCommand,
    BetaMemoryTool20250818InsertCommand,
    BetaMemoryTool20250818RenameCommand,
    BetaMemoryTool20250818StrReplaceCommand,
    BetaMemoryTool20250818ViewCommand,
)
from typing_extensions import override

from engramfs.client import Session
from engramfs.errors import EngramError
from engramfs.tools.memory import Memory
from engramfs.tools.memory_command import check
from engramfs.tools.reach import Reach


class MemoryTool(BetaAbstractMemoryTool):
    """The memory of `session`'s actor. What is refused is a `ToolError` whose text is for the model."""

    def __init__(
        self, session: Session, *, cache_control: BetaCacheControlEphemeralParam | None = None
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._reach = Reach(session)
        self._memory = Memory(self._reach)

    @override
    def call(self, input: object) -> BetaFunctionToolResultType:
        _check(input)
        return super().call(input)

    @override
    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        return self._answered(lambda: self._memory.view(command.path, _range(command)))

    @override
    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        return self._answered(lambda: self._memory.create(command.path, command.file_text))

    @override
    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        new = command.new_str or ""
        return self._answered(lambda: self._memory.str_replace(command.path, command.old_str, new))

    @override
    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        line, text = command.insert_line, command.insert_text
        return self._answered(lambda: self._memory.insert(command.path, line, text))

    @override
    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        return self._answered(lambda: self._memory.delete(command.path))

    @override
    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        return self._answered(lambda: self._memory.rename(command.old_path, command.new_path))

    @override
    def clear_all_memory(self) -> str:
        return self._answered(self._memory.clear)

    def _answered(self, command: Callable[[], str]) -> str:
        try:
            return command()
        except EngramError as error:
            raise ToolError(self._reach.told(error)) from error


class AsyncMemoryTool(BetaAsyncAbstractMemoryTool):
    """The same for the asynchronous SDK; each command runs in a thread."""

    def __init__(
        self, session: Session, *, cache_control: BetaCacheControlEphemeralParam | None = None
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._tool = MemoryTool(session)

    @override
    async def call(self, input: object) -> BetaFunctionToolResultType:
        _check(input)
        return await super().call(input)

    @override
    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        return await anyio.to_thread.run_sync(self._tool.view, command)

    @override
    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        return await anyio.to_thread.run_sync(self._tool.create, command)

    @override
    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        return await anyio.to_thread.run_sync(self._tool.str_replace, command)

    @override
    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        return await anyio.to_thread.run_sync(self._tool.insert, command)

    @override
    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        return await anyio.to_thread.run_sync(self._tool.delete, command)

    @override
    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        return await anyio.to_thread.run_sync(self._tool.rename, command)

    @override
    async def clear_all_memory(self) -> str:
        return await anyio.to_thread.run_sync(self._tool.clear_all_memory)


def _check(given: object) -> None:
    """The SDK takes what it is given; so that a model hears what is missing, it is looked at before."""
    try:
        check(given)
    except EngramError as error:
        raise ToolError(error.message) from error


def _range(command: BetaMemoryTool20250818ViewCommand) -> tuple[int, ...] | None:
    return tuple(command.view_range) if command.view_range is not None else None
