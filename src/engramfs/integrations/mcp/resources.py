"""Each file of a session's stores as a resource: `engramfs:///mnt/memory/state/notes.md`, as mounted."""

import base64
from typing import Any
from urllib.parse import quote, unquote

import mcp_types as types

from engramfs.client import Attachment
from engramfs.errors import NotFound
from engramfs.model.names import printable, raw
from engramfs.tools.reach import Reach

SCHEME = "engramfs://"
PAGE = 500  # resources in one answer


def uri_of(attachment: Attachment, path: str) -> str | None:
    """The address of a file in an attachment's store; None for one that the attachment does not show."""
    if attachment.inside:
        if path != attachment.inside and not path.startswith(f"{attachment.inside}/"):
            return None
        path = path[len(attachment.inside) :].lstrip("/")
    place = f"{attachment.path}/{path}" if path else attachment.path
    return SCHEME + quote(raw(place))


class Resources:
    """The files that the session of `reach` sees."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach

    def listed(self, cursor: str | None) -> types.ListResourcesResult:
        """A page of them, by attachment and path."""
        self._reach.refresh()
        found = [resource for attachment in self._reach for resource in self._of(attachment)]
        start = int(cursor) if cursor is not None and cursor.isdecimal() else 0
        more = str(start + PAGE) if start + PAGE < len(found) else None
        return types.ListResourcesResult(resources=found[start : start + PAGE], next_cursor=more)

    def _of(self, attachment: Attachment) -> list[types.Resource]:
        files = self._reach.files(attachment)
        return [
            types.Resource(
                uri=uri_of(attachment, file.path) or "",
                name=raw(file.path).decode(errors="replace"),
                description=f"in {attachment.store}, {attachment.access}",
                size=file.size,
            )
            for file in files
        ]

    def read(self, uri: str) -> types.ReadResourceResult:
        """Raises `NotFound` for what the session does not see."""
        self._reach.refresh()
        attachment, path = self._place(uri)
        read = self._reach.read(attachment, path)
        meta: dict[str, Any] = {"sha256": read.sha256, "version": read.version}
        contents: types.TextResourceContents | types.BlobResourceContents
        try:
            contents = types.TextResourceContents(uri=uri, text=read.content.decode(), _meta=meta)
        except UnicodeDecodeError:
            blob = base64.b64encode(read.content).decode()
            contents = types.BlobResourceContents(uri=uri, blob=blob, _meta=meta)
        return types.ReadResourceResult(contents=[contents])

    def _place(self, uri: str) -> tuple[Attachment, str]:
        place = printable(raw(unquote(uri.removeprefix(SCHEME), errors="surrogateescape")))
        if uri.startswith(SCHEME):
            for attachment in self._reach:
                if place == attachment.path or place.startswith(f"{attachment.path}/"):
                    below = place.removeprefix(attachment.path).lstrip("/")
                    return attachment, "/".join(part for part in (attachment.inside, below) if part)
        raise NotFound(f"there is no resource {uri}")
