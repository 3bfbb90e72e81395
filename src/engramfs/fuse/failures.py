"""What `status` and `.versions/status` say of a call that failed because of the state directory."""

from engramfs.errors import EngramError, StorageError
from engramfs.model.names import printable
from engramfs.vfs.filesystem import Filesystem
from engramfs.vfs.live_view import LiveView

BY_HANDLE = frozenset(("read", "write", "flush", "fsync", "fsyncdir", "release", "readdir"))
BY_NAME = frozenset(("lookup", "create", "mknod", "mkdir", "symlink", "unlink", "rmdir", "rename"))


def remember(filesystem: Filesystem, operation: str, inode: int, name: bytes, error: StorageError) -> None:
    """`operation` failed for `name` in the directory `inode`, or without a name for `inode` itself.

    An error that names its store was remembered by it.
    """
    if "store" in error.details:
        return
    try:
        view, node = filesystem.find(inode)
        if isinstance(view, LiveView):
            path = view.tree.path(node, name) if name else view.tree.path_of(view.node(node))
            view.store.remember(f"{operation} {printable(path)}: {error.message}")
            return
    except EngramError:  # the view has ended, or the log cannot be read
        pass
    filesystem.resources.failed("", f"{operation}: {error.message}")
