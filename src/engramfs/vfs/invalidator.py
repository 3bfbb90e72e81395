"""The one way in which the vfs tells the kernel that something it may have cached has changed."""

from typing import Protocol


class Invalidator(Protocol):
    """Calls return at once; what they announce happens soon, on a thread of the implementation's own."""

    def inode_changed(self, inode: int, *, content: bool) -> None:
        """The attributes of `inode` changed, and with `content` its cached pages are void."""

    def entry_changed(self, parent: int, name: bytes) -> None:
        """`name` in the directory with inode number `parent` stands for something else, or for nothing."""


class NoInvalidator:
    """For use without a kernel: recovery, and tests of the vfs alone."""

    def inode_changed(self, inode: int, *, content: bool) -> None:
        pass

    def entry_changed(self, parent: int, name: bytes) -> None:
        pass
