"""`engramfs oci-hook`: a session for every OCI container whose annotations ask for one.

A runtime calls it with the container's state on stdin (see the OCI runtime specification, "hooks"). What was
seen with runc 1.1 and crun 1.8:

    prestart, createRuntime   in the namespaces of the runtime; `pid` is the container's first process
    createContainer           in those of the container; `pid` is of no use (its own name of itself, or 0),
                              and the hook is a child of the container's first process
    poststop                  in the namespaces of the runtime; there is no process any more

Before all but the last the container's mounts are made, and its first process has not entered its root
directory yet: that is the `root` of the bundle. `createRuntime` is the one to use. By `createContainer` crun
has made a read-only root read-only, so that mount points must be there already; and with a user namespace,
the hooks of the container may not copy mounts of the host. What a hook says is shown by runc; crun shows its
exit code alone.

Whoever may set the annotations of a container chooses whose memory it sees.
"""

import contextlib
import os
import sys
from typing import TYPE_CHECKING, Any

import click

from engramfs.cli import attaching
from engramfs.cli.command import Command
from engramfs.cli.invocation import Invocation, pass_invocation
from engramfs.errors import NotFound, Refused, Unavailable, UsageError

if TYPE_CHECKING:
    from engramfs.cli.oci_container import Container

ANNOTATIONS = ("engramfs.agent", "engramfs.actor", "engramfs.tenant")


@click.command("oci-hook", cls=Command, short_help="A hook for container runtimes.")
@pass_invocation
def command(invocation: Invocation) -> None:
    """Open a session for a container and attach it, or close it when the container has stopped.

    Reads the state of the container from stdin, as an OCI hook of createRuntime (or prestart or
    createContainer) and of poststop. The annotations engramfs.agent, engramfs.actor and engramfs.tenant say
    for whom the session is. Without engramfs.agent nothing is done. When anything is wrong the container does
    not start.
    """
    from engramfs.cli.oci_container import read_container

    container = read_container(sys.stdin.buffer.read())
    if ANNOTATIONS[0] not in container.annotations:
        return
    if container.stopped:
        _close(invocation, container)
    else:
        attaching.require_privilege()
        _open(invocation, container)


def _open(invocation: Invocation, container: "Container") -> None:
    from engramfs.mount.place import Place, namespace_of, of_process

    pid = container.first_process()
    if namespace_of(pid) == namespace_of(attaching.daemon_pid(invocation)):
        raise Refused(
            f"container {container.id} has no mount namespace of its own; its session would be everyone's"
        )
    uid, gid = container.owner(pid)
    agent, actor, tenant = map(container.annotations.get, ANNOTATIONS)
    session: dict[str, Any] = invocation.client.call(
        "session.open", agent=agent, actor=actor, tenant=tenant, uid=uid, gid=gid
    )
    try:
        attaching.require_mapped(pid, session)
        found = of_process(pid)
        place = Place("/", found.namespace, found.pid, found.started)
        attaching.attach(invocation, session, place, root=container.root_of(pid))
        _remember(invocation, container, session["id"])
    except BaseException:
        invocation.client.call("session.close", id=session["id"])
        raise


def _close(invocation: Invocation, container: "Container") -> None:
    path = _record(invocation, container)
    try:
        with open(path) as file:
            session = file.read().strip()
        os.unlink(path)
    except FileNotFoundError:
        return
    with contextlib.suppress(NotFound):
        invocation.client.call("session.close", id=session)


def _record(invocation: Invocation, container: "Container") -> str:
    """The file that has the session of a container, until it has stopped."""
    if "/" in container.id or container.id in ("", ".", ".."):
        raise UsageError(f"the container id {container.id!r} is not allowed; use one without '/'")
    return os.path.join(invocation.locations.run, "containers", container.id)


def _remember(invocation: Invocation, container: "Container", session: str) -> None:
    path = _record(invocation, container)
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(path, "w") as file:
            file.write(f"{session}\n")
    except OSError as error:
        raise Unavailable(f"cannot write {path}: {error.strerror}; make room in the run directory") from error
