"""The protocol's requests, answered by `engramfs.tools` over one session.

Concurrency. Handlers run on the event loop, and what they ask of the log or the daemon runs in a thread: a
call that waits for the index does not keep others from being answered.
"""

import json
from collections.abc import Callable
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.session import ServerSession
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError

from engramfs import __version__, telemetry
from engramfs.errors import EngramError
from engramfs.integrations.mcp.following import Changed, Feed
from engramfs.integrations.mcp.resources import Resources
from engramfs.tools.call import Failure, Tool, call
from engramfs.tools.offered import Offered
from engramfs.tools.prompt import prompt

Result = TypeVar("Result")
Context = ServerRequestContext[Any, Any]
Paged = types.PaginatedRequestParams | None

PROMPT = "engramfs"
_FOLLOW = 0.1  # seconds between two looks at the log
_FAILED = "the request failed; the log of this process has the traceback"
_NOT_FOUND = -32002  # what the protocol answers for a resource that is not there


class MemoryServer:
    """One session's tools, resources and prompt."""

    def __init__(self, offered: Offered) -> None:
        self._offered = offered
        self._resources = Resources(offered.reach)
        self._bus = InMemorySubscriptionBus()
        self._subscribed: set[str] = set()
        self._names = offered.names()  # of the tools that the client was last told of
        self._session: ServerSession | None = None  # of a client of the protocol before 2026-07-28
        self.server = Server(
            "engramfs",
            version=__version__,
            instructions="Files and records that outlive this session; each call that writes is one version.",
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_read_resource=self._read_resource,
            on_subscribe_resource=self._subscribe,
            on_unsubscribe_resource=self._unsubscribe,
            on_subscriptions_listen=ListenHandler(self._bus),
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
        )

    async def serve(self, read_stream: Any, write_stream: Any) -> None:
        """Serve one client until it goes away."""
        notifications = NotificationOptions(resources_changed=True, tools_changed=True, prompts_changed=True)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._follow)
            options = self.server.create_initialization_options(notifications)
            await self.server.run(read_stream, write_stream, options)
            tasks.cancel_scope.cancel()

    # Tools

    async def _list_tools(self, context: Context, _params: Paged) -> types.ListToolsResult:
        self._session = context.session
        tools = await self._in_thread(self._offered.tools)
        self._names = [tool.name for tool in tools]
        return types.ListToolsResult(tools=[_described(tool) for tool in tools])

    async def _call_tool(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        self._session = context.session
        return await self._in_thread(lambda: self._called(params.name, params.arguments or {}))

    def _called(self, name: str, arguments: dict[str, Any]) -> types.CallToolResult:
        try:
            tool = self._offered.tool(name)
        except EngramError as error:  # the session has ended, say
            return _answered(Failure(error.code, self._offered.reach.told(error)), plain=False)
        if tool is None:
            return _answered(Failure("not_found", f"this session has no tool {name}"), plain=False)
        return _answered(call(tool, arguments), plain=tool.plain)

    # Resources

    async def _list_resources(self, context: Context, params: Paged) -> types.ListResourcesResult:
        self._session = context.session
        cursor = params.cursor if params is not None else None
        return await self._in_thread(lambda: self._resources.listed(cursor))

    async def _read_resource(
        self, _context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        return await self._in_thread(lambda: self._resources.read(str(params.uri)))

    async def _subscribe(self, context: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        self._session = context.session
        self._subscribed.add(str(params.uri))
        return types.EmptyResult()

    async def _unsubscribe(
        self, _context: Context, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        self._subscribed.discard(str(params.uri))
        return types.EmptyResult()

    # What changes

    async def _follow(self) -> None:
        """Tell the client of what changes, until cancelled."""
        feed = await self._in_thread(lambda: Feed(self._offered.reach))
        while True:
            await anyio.sleep(_FOLLOW)
            await self._tell(await self._in_thread(feed.changed))

    async def _tell(self, changed: Changed) -> None:
        for uri in changed.uris:
            await self._bus.publish(ResourceUpdated(uri))
            if self._session is not None and uri in self._subscribed:
                await self._session.send_resource_updated(uri)
        if changed.list_changed:
            await self._bus.publish(ResourcesListChanged())
            if self._session is not None:
                await self._session.send_resource_list_changed()
        if changed.attachments_changed:
            await self._tell_of_others()

    async def _tell_of_others(self) -> None:
        """With other attachments the prompt says something else, and there may be other tools."""
        await self._bus.publish(PromptsListChanged())
        if self._session is not None:
            await self._session.send_prompt_list_changed()
        before, self._names = self._names, self._offered.names()
        if self._names != before:
            await self._bus.publish(ToolsListChanged())
            if self._session is not None:
                await self._session.send_tool_list_changed()

    async def _in_thread(self, work: Callable[[], Result]) -> Result:
        """What a thread makes of `work`; an error is one of the protocol, without a traceback.

        A call whose client has gone away is left to its thread: what it writes is written.
        """
        try:
            return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
        except EngramError as error:
            code = _NOT_FOUND if error.code == "not_found" else types.INTERNAL_ERROR
            raise MCPError(code, self._offered.reach.told(error), {"code": error.code}) from None
        except Exception:
            telemetry.logger("mcp").exception("a request failed")
            raise MCPError(types.INTERNAL_ERROR, _FAILED, {"code": EngramError.code}) from None

    # The prompt

    async def _list_prompts(self, context: Context, _params: Paged) -> types.ListPromptsResult:
        self._session = context.session
        described = types.Prompt(name=PROMPT, description="What an agent should know of its stores.")
        return types.ListPromptsResult(prompts=[described])

    async def _get_prompt(
        self, _context: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        if params.name != PROMPT:
            raise MCPError(types.INVALID_PARAMS, f"there is no prompt {params.name}; there is {PROMPT}")
        told = await self._in_thread(
            lambda: prompt(self._offered.reach, [tool.name for tool in self._offered.tools()])
        )
        message = types.PromptMessage(role="user", content=types.TextContent(text=told.text))
        return types.GetPromptResult(messages=[message])


def _described(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.schema(),
        annotations=types.ToolAnnotations(read_only_hint=not tool.writes, open_world_hint=False),
    )


def _answered(answer: dict[str, Any] | str | Failure, *, plain: bool) -> types.CallToolResult:
    """With `plain`, the text of a failure is for a model that knows its words, and has no code in it."""
    if isinstance(answer, Failure):
        text = answer.message if plain else f"{answer.code}: {answer.message}"
        document = {"code": answer.code, "message": answer.message, **answer.details}
        return _result(text, document, is_error=True)
    if isinstance(answer, str):
        return types.CallToolResult(content=[types.TextContent(text=answer)])
    return _result(json.dumps(answer, ensure_ascii=False), answer)


def _result(text: str, document: dict[str, Any], *, is_error: bool = False) -> types.CallToolResult:
    """Names that are not UTF-8 cannot travel as structure; they are escaped in the text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        escaped = text.encode(errors="backslashreplace").decode()
        return types.CallToolResult(content=[types.TextContent(text=escaped)], is_error=is_error)
    return types.CallToolResult(
        content=[types.TextContent(text=text)], structured_content=document, is_error=is_error
    )
