"""What a sandbox runtime has to be given so that it puts a session's mounts into a sandbox that it makes.

Every source is a place in the hub, which only root reaches; so the runtime runs as root, on this machine. The
read-only parents come first: they hold the mount points of the others.

Containers are not asked for two things. Propagation: nothing is ever mounted beneath a place in the hub, so
there would be nothing to hand on, and runtimes refuse a `slave` whose source is private. `readonly`: what is
read-only refuses every write itself, while runc, to make a bind mount read-only, drops the nosuid and nodev
that it has from the hub; then a file that another agent made setuid would be obeyed.
"""

import json
import os
import shlex
import stat
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engramfs.mount.copying import MountPlan

# They lead around mount namespaces (see `engramfs.mount.sandbox`). Other runtimes take them away by default.
_BUBBLEWRAP_DROPS = ("CAP_DAC_READ_SEARCH", "CAP_SYS_PTRACE")


def container_arguments(session: str, hub: str, plans: Sequence["MountPlan"]) -> list[str]:
    """For `docker run` and `podman run`. A label names the session."""
    arguments = ["--label", f"engramfs.session={session}"]
    for plan in plans:
        fields = ["type=bind", f"source={_source(hub, plan)}", f"target={plan.target}"]
        arguments += ["--mount", ",".join(map(_csv_field, fields))]
    return arguments


def bubblewrap_arguments(_session: str, hub: str, plans: Sequence["MountPlan"]) -> list[str]:
    """For `bwrap`, after the arguments that make the root directory."""
    arguments = [word for capability in _BUBBLEWRAP_DROPS for word in ("--cap-drop", capability)]
    for plan in plans:
        arguments += ["--ro-bind" if plan.read_only else "--bind", _source(hub, plan), plan.target]
    return arguments


def kubernetes_manifest(session: str, hub: str, plans: Sequence["MountPlan"]) -> str:
    """The `volumeMounts` of a container and the `volumes` of its pod, as YAML."""
    volumes, mounts = [], []
    for number, plan in enumerate(plans):
        name, source = f"engramfs-{session}-{number}", _source(hub, plan)
        kind = "Directory" if stat.S_ISDIR(os.stat(source).st_mode) else "File"
        volumes.append({"name": name, "hostPath": {"path": source, "type": kind}})
        mounts.append({"name": name, "mountPath": plan.target})
    lines = [
        f"# Session {session} on the node {os.uname().nodename}: a part of the container, a part of the pod.",
        "volumeMounts:",
        *(f"  - {json.dumps(mount)}" for mount in mounts),
        "volumes:",
        *(f"  - {json.dumps(volume)}" for volume in volumes),
    ]
    return "\n".join(lines)


def shell_words(
    arguments: Callable[[str, str, Sequence["MountPlan"]], list[str]],
) -> Callable[[str, str, Sequence["MountPlan"]], str]:
    """The same as one line, quoted for a shell."""
    return lambda session, hub, plans: shlex.join(arguments(session, hub, plans))


RUNTIMES: dict[str, Callable[[str, str, Sequence["MountPlan"]], str]] = {
    "docker": shell_words(container_arguments),
    "podman": shell_words(container_arguments),
    "bwrap": shell_words(bubblewrap_arguments),
    "kubernetes": kubernetes_manifest,
}


def _source(hub: str, plan: "MountPlan") -> str:
    return os.path.join(hub, plan.source)


def _csv_field(field: str) -> str:
    """`--mount` is read as a line of CSV."""
    return '"' + field.replace('"', '""') + '"' if any(mark in field for mark in ',"') else field
