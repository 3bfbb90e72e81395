"""What views of old versions, and the kernel, still hold of a content that was redacted.

Nothing of an old version ever changes but this, so pinned views and the directories of `.versions` keep
what they were told for as long as they like. A worker that took a mount over does not know what the
kernel was told through views that it has not made yet; their inode numbers are known all the same.
"""

from collections.abc import Iterable

from engramfs.history.redaction import Removed, Span
from engramfs.vfs.attributes import inode_number
from engramfs.vfs.filesystem import Filesystem
from engramfs.vfs.pinned_view import PinnedView
from engramfs.vfs.view_numbers import Key


def drop_redacted(filesystem: Filesystem, removed: Removed) -> None:
    """Let every view, and the kernel, look up anew what `removed` took out."""
    filesystem.resources.contents.forget(removed.content.digest)
    for number, view in filesystem.views.items():
        if isinstance(view, PinnedView) and view.store.id == removed.store:
            for span in _showing(removed.spans, view.version):
                view.forgotten(span.entry.node)
                _drop(filesystem, number, span)
    for number, key in filesystem.unmade_views():
        for span in _showing(removed.spans, _version_of(key)):
            _drop(filesystem, number, span)


def _showing(spans: Iterable[Span], version: int) -> Iterable[Span]:
    return (span for span in spans if span.first <= version <= span.last)


def _version_of(key: Key) -> int:
    """The version that a view with this key shows; 0: the head, or none."""
    match key:
        case ("pinned", _, int(version), *_) | ("version", _, int(version)):
            return version
        case _:
            return 0


def _drop(filesystem: Filesystem, view: int, span: Span) -> None:
    """That the kernel knows nothing of it is normal, and so is a number that belongs to another store."""
    invalidator = filesystem.resources.invalidator
    invalidator.entry_changed(inode_number(view, span.parent), span.name)
    invalidator.inode_changed(inode_number(view, span.entry.node), content=True)
