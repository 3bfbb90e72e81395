"""One mount of a session replaced by another in every place where the session is attached: in all or in none.

First the new one is put beneath the old one everywhere, where nobody sees it. Only when that has worked in
every place are the old ones taken off. A place is never bare and never shows anything else (Linux 6.5;
before, it is bare for a moment).

What has been put beneath cannot be taken away again from there. When a place refuses, the others keep the
new mount hidden beneath the old one until they are detached; its view is ended by the daemon.

Needs root. Forks for places in other mount namespaces.
"""

import contextlib
from collections.abc import Generator, Sequence

from engramfs.errors import Conflict, NotFound
from engramfs.mount import syscalls
from engramfs.mount.copying import MountPlan, copies
from engramfs.mount.detach import shows
from engramfs.mount.holders import Way
from engramfs.mount.hub import unmount
from engramfs.mount.mountinfo import top_mount
from engramfs.mount.target import RootDirectory
from engramfs.mount.visit import Visit


def switch(hub: str, daemon_pid: int, plan: MountPlan, ways: Sequence[Way]) -> None:
    """Put `plan` in the place of the mount of the same session that is at its target, at the end of all ways.

    Passes over places whose processes have ended. Raises `Conflict` where the session is not mounted, and as
    `attach_session` does; then every place shows what it did.
    """
    with (
        copies(hub, daemon_pid, [plan] * len(ways)) as copied,
        contextlib.ExitStack() as stack,
    ):
        visits = []
        for way, tree in zip(ways, copied.trees, strict=True):
            with contextlib.suppress(NotFound):
                visits.append(stack.enter_context(Visit(way.pid, _Replacing(plan, tree), way.root)))
        for visit in visits:
            visit.step()
        for visit in visits:
            visit.step()


class _Replacing:
    """The steps in one place. Called in the process that has entered it."""

    def __init__(self, plan: MountPlan, tree: int) -> None:
        self._plan = plan
        self._tree = tree

    def __call__(self, directory: RootDirectory) -> Generator[None, None, None]:
        target = self._target(directory)
        point = directory.proc.path_of(target)
        try:
            syscalls.move_mount(self._tree, target, beneath=True)
        except OSError:  # an older kernel, or a place that propagates to others: first off, then on
            yield
            unmount(point)
            syscalls.move_mount(self._tree, directory.open(self._plan.target))
        else:
            yield
            unmount(point)

    def _target(self, directory: RootDirectory) -> int:
        shown = directory.shown(self._plan.target)
        try:
            target = directory.open(self._plan.target)
        except OSError as error:
            raise Conflict(
                f"{shown}: {error.strerror}; attach the session again, or detach it there"
            ) from error
        present = top_mount(directory.proc.mounts(), directory.proc.path_of(target))
        if present is None or not shows(present, self._plan):
            raise Conflict(
                f"the session is not mounted at {shown} any more; attach it again, or detach it there"
            )
        return target
