"""What views of old versions, and the kernel, still hold of a content that was redacted.

Nothing of an old version ever changes but this, so pinned views and the directories of `.versions` keep
what they were told for as long as they like. A worker that took a mount over does not know what the
kernel was told through views that it has not made yet; their inode numbers are known all the same.
"""

from collections.abc import Collection, Iterable

from engramfs.history.redaction_rows import Removed
from engramfs.history.redaction_target import Span
from engramfs.model.store import Store
from engramfs.vfs.attributes import inode_number
from engramfs.vfs.filesystem import Filesystem
from engramfs.vfs.pinned_view import PinnedView
from engramfs.vfs.view_numbers import Key


def drop_redacted(filesystem: Filesystem, removed: Removed) -> None:
    """Let every view, and the kernel, look up anew what `removed` took out."""
    filesystem.resources.contents.forget(removed.content.digest)
    for number, view in filesystem.views.items():
        if isinstance(view, PinnedView):
            for span in _shown_by(view, removed):
                view.forgotten(span.entry.node)
                _drop(filesystem, number, span)
    for number, key in filesystem.unmade_views():
        for span in _perhaps_shown(key, removed.spans):
            _drop(filesystem, number, span)


def say_no_more(filesystem: Filesystem, store: Store, paths: Collection[str]) -> None:
    """What `status`, `.versions/status` and the run directory say names none of these paths of a store."""
    filesystem.resources.failures.redact(store.name, paths)
    for live in filesystem.stores.values():
        if store.id in (live.store.id, live.store.base):
            live.recent.redact(paths)


def _shown_by(view: PinnedView, removed: Removed) -> Iterable[Span]:
    """What waits for a decision shows one of many versions of the store below it, beside its own changes."""
    if view.store.base == removed.store:
        return removed.spans
    return _showing(removed.spans, view.version) if view.store.id == removed.store else ()


def _perhaps_shown(key: Key, spans: tuple[Span, ...]) -> Iterable[Span]:
    match key:
        case ("pinned", _, int(version), *_) | ("version", _, int(version)):
            return _showing(spans, version)
        case ("offered", *_):
            return spans
        case _:
            return ()


def _showing(spans: Iterable[Span], version: int) -> Iterable[Span]:
    return (span for span in spans if span.first <= version <= span.last)


def _drop(filesystem: Filesystem, view: int, span: Span) -> None:
    """That the kernel knows nothing of it is normal, and so is a number that belongs to another store."""
    invalidator = filesystem.resources.invalidator
    invalidator.entry_changed(inode_number(view, span.parent), span.name)
    invalidator.inode_changed(inode_number(view, span.entry.node), content=True)
