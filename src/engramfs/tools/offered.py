"""The tools that a session is offered: what it may do, and nothing else."""

import msgspec

from engramfs.client import Session
from engramfs.model.file_edit import EditLimits
from engramfs.tools.call import Tool
from engramfs.tools.context_files import ContextFiles, ListContextFiles, ReadContextFile, WriteContext
from engramfs.tools.memory import Memory
from engramfs.tools.memory_command import MemoryCommand
from engramfs.tools.reach import USER_MEMORY, Reach
from engramfs.tools.record_search import MemorySearch, MemoryTaskWait, RecordSearch
from engramfs.tools.records import MemoryAdd, MemoryDelete, MemoryUpdate, Records

_LIST = "Lists the writable contexts: name, description, version, and each file with size and sha256."
_READ = (
    "Reads the current content of a file in a context, with its sha256 for a later write. A directory that "
    "shows the context as of an older version may show something else."
)
_WRITE = (
    "Writes files of one context, as one version: all of them or none. Modes: create (fails if the file "
    "exists), append, edit (replaces old_text, which must occur exactly once, by new_text), overwrite (the "
    "whole file), delete. Pass expected_sha256 from your last read with every mode but create: a file that "
    "has changed since is refused with the code stale."
)
_MEMORY = (
    "Keeps files under /memories that outlive this conversation. Commands: view (path, view_range), create "
    "(path, file_text), str_replace (path, old_str, new_str), insert (path, insert_line, insert_text), "
    "delete (path), rename (old_path, new_path). /memories is your own memory, which a mount shows as "
    "/memories/user: both name the same files. /memories/org, if it is listed, is your organisation's."
)
_ADD = (
    "Remembers one thing. It is looked up first: what is known already is not added again (decision "
    "duplicate, subset or superset), and related records are named."
)
_SEARCH = "Finds records by words and by meaning, the best first."
_UPDATE = "Replaces the content of a record; what it said before is kept in metadata.history."
_DELETE = "Removes a record."
_WAIT = "Waits until what memory_add or memory_update wrote can be found."


class Offered:
    """The tools of one session. `close` gives up what they loaded; it does not end the session."""

    def __init__(self, session: Session, limits: EditLimits | None = None) -> None:
        self.reach = Reach(session)
        self._search = RecordSearch(self.reach)
        self._contexts = ContextFiles(self.reach, limits)
        self._records = Records(self.reach, self._search)
        self._memory = Memory(self.reach)

    def tool(self, name: str) -> Tool | None:
        """The tool of that name; what it may do is looked at when it is called."""
        known = {tool.name: tool for tool in self._tools()}
        return known.get(name) or next((tool for tool in self.tools() if tool.name == name), None)

    def tools(self) -> list[Tool]:
        """As the session is now."""
        self.reach.refresh()
        return self._tools()

    def names(self) -> list[str]:
        """Of the tools, as the session was when it was last looked at."""
        return [tool.name for tool in self._tools()]

    def _tools(self) -> list[Tool]:
        tools = self._context_tools() if self.reach.writable() else []
        memory = self.reach.at(USER_MEMORY)
        if memory is not None and memory.writable:
            tools += [
                *self._record_tools(),
                Tool("memory", _MEMORY, MemoryCommand, self._memory.run, True, True),
            ]
        return [msgspec.structs.replace(tool, told=self.reach.told) for tool in tools]

    def _context_tools(self) -> list[Tool]:
        return [
            Tool("list_context_files", _LIST, ListContextFiles, self._contexts.list_context_files),
            Tool("read_context_file", _READ, ReadContextFile, self._contexts.read_context_file),
            Tool("write_context", _WRITE, WriteContext, self._contexts.write_context, writes=True),
        ]

    def _record_tools(self) -> list[Tool]:
        return [
            Tool("memory_add", _ADD, MemoryAdd, self._records.memory_add, writes=True),
            Tool("memory_search", _SEARCH, MemorySearch, self._search.memory_search),
            Tool("memory_update", _UPDATE, MemoryUpdate, self._records.memory_update, writes=True),
            Tool("memory_delete", _DELETE, MemoryDelete, self._records.memory_delete, writes=True),
            Tool("memory_task_wait", _WAIT, MemoryTaskWait, self._search.memory_task_wait),
        ]

    def close(self) -> None:
        self._search.close()
        self.reach.client.searching.close()
