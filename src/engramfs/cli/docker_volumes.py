"""Docker volumes: each is one directory of one session, which is open as long as a container uses it.

A volume is what was asked for when it was made: for whom, and which directory. That lives in the state
directory, `docker-volumes.json`, as Docker expects volumes to outlive the machine's run. The directory is a
place in the hub, which Docker binds into containers.

Concurrency. Any thread; one call at a time.
"""

import contextlib
import os
import threading
from collections.abc import Mapping
from typing import Any

import msgspec

from engramfs.cli import attaching
from engramfs.cli.invocation import Invocation
from engramfs.daemon.scoping import memory_store
from engramfs.errors import Busy, Conflict, NotFound, StorageError, Unavailable, UsageError

replace = msgspec.structs.replace
FILE = "docker-volumes.json"
OPTIONS = ("agent", "actor", "tenant", "mount")
_ABOVE = {"user": "/memories/user", "org": "/memories/org"}  # every other name is one of the agent's memory


class Volume(msgspec.Struct, frozen=True):
    """`users` are the ids under which Docker has mounted it; `session` is open when there are any."""

    name: str
    agent: str | None = None
    actor: str | None = None
    tenant: str | None = None
    mount: str = "state"
    session: str | None = None
    users: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """Where the directory is in the session."""
        return _ABOVE.get(self.mount, f"/mnt/memory/{self.mount}")

    @property
    def options(self) -> dict[str, str | None]:
        return {option: getattr(self, option) for option in OPTIONS}


class Volumes:
    """All volumes. Methods raise `EngramError`, `NotFound` for a volume that there is not."""

    def __init__(self, invocation: Invocation) -> None:
        self._invocation = invocation
        self._file = os.path.join(invocation.locations.state, FILE)
        self._lock = threading.Lock()
        self._volumes = _read(self._file)

    def create(self, name: str, options: Mapping[str, str]) -> None:
        """Once more, with the same options or none, does no harm. Raises `UsageError` and `Conflict`."""
        unknown = sorted(set(options) - set(OPTIONS))
        if unknown:
            raise UsageError(f"there is no option {unknown[0]!r}; use {', '.join(OPTIONS)}")
        volume = replace(Volume(name), **options)
        with self._lock:
            known = self._volumes.get(name)
            if known is None:
                config = self._invocation.configuration().agent(volume.agent)
                memory_store(config, config.name, volume.actor, volume.tenant)
                self._keep(volume)
            elif options and known.options != volume.options:
                raise Conflict(f"volume {name} exists with other options; remove it or choose another name")

    def remove(self, name: str) -> None:
        """Forget a volume; what is in the stores stays. Raises `Busy`."""
        with self._lock:
            volume = self._find(name)
            if volume.users and self._session(volume) is not None:
                raise Busy(f"volume {name} is mounted by {', '.join(volume.users)}; stop those first")
            self._end(volume)
            del self._volumes[name]
            self._write()

    def mount(self, name: str, user: str) -> str:
        """The directory for `user`, who names itself again to unmount it. Opens a session for the first."""
        with self._lock:
            volume = self._find(name)
            session = self._session(volume)
            if session is None:  # there was none, or it ended with the machine and all its users
                volume = replace(volume, users=())
                session = self._open(volume)
            directory = self._directory(volume, session)
            users = (*(each for each in volume.users if each != user), user)
            self._keep(replace(volume, session=session["id"], users=users))
            return directory

    def unmount(self, name: str, user: str) -> None:
        """Closes the session after the last one."""
        with self._lock:
            volume = self._find(name)
            volume = replace(volume, users=tuple(each for each in volume.users if each != user))
            self._keep(volume)
            if not volume.users:
                self._end(volume)

    def directory(self, name: str) -> str:
        """Where the volume is mounted, or an empty string."""
        with self._lock:
            volume = self._find(name)
            session = self._session(volume) if volume.users else None
            return self._directory(volume, session) if session is not None else ""

    def get(self, name: str) -> Volume:
        with self._lock:
            return self._find(name)

    def every(self) -> list[Volume]:
        with self._lock:
            return sorted(self._volumes.values(), key=lambda volume: volume.name)

    def _find(self, name: str) -> Volume:
        volume = self._volumes.get(name)
        if volume is None:
            raise NotFound(f"there is no volume {name}; docker volume create -d engramfs {name} makes it")
        return volume

    # Sessions

    def _session(self, volume: Volume) -> dict[str, Any] | None:
        """The session of a volume, if it is open."""
        if volume.session is None:
            return None
        try:
            session: dict[str, Any] = self._invocation.client.call("session.show", id=volume.session)
        except NotFound:
            return None
        return session

    def _open(self, volume: Volume) -> dict[str, Any]:
        client = self._invocation.client
        session: dict[str, Any] = client.call(
            "session.open", agent=volume.agent, actor=volume.actor, tenant=volume.tenant
        )
        try:
            self._directory(volume, session)
        except BaseException:
            client.call("session.close", id=session["id"])
            raise
        return session

    def _directory(self, volume: Volume, session: dict[str, Any]) -> str:
        for attached in session["attachments"]:
            if attached["path"] == volume.path:
                return os.path.join(attaching.hub_point(self._invocation), attached["source"])
        shown = ", ".join(attached["path"] for attached in session["attachments"])
        raise NotFound(
            f"volume {volume.name} is to show {volume.path}, which agent {session['agent']} does not have; "
            f"it has {shown}"
        )

    def _end(self, volume: Volume) -> None:
        if volume.session is not None:
            with contextlib.suppress(NotFound):  # closed by a person, or gone with the machine's last run
                self._invocation.client.call("session.close", id=volume.session)
            self._keep(replace(volume, session=None))

    # Keeping

    def _keep(self, volume: Volume) -> None:
        self._volumes[volume.name] = volume
        self._write()

    def _write(self) -> None:
        """Write the file, whole or not at all."""
        temporary = f"{self._file}.new"
        try:
            os.makedirs(os.path.dirname(self._file), mode=0o700, exist_ok=True)
            with open(temporary, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
                file.write(msgspec.json.format(msgspec.json.encode(list(self._volumes.values()))) + b"\n")
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self._file)
        except OSError as error:
            raise Unavailable(
                f"cannot write {self._file}: {error.strerror}; make room, or choose another --state"
            ) from error


def _read(path: str) -> dict[str, Volume]:
    try:
        with open(path, "rb") as file:
            volumes = msgspec.json.decode(file.read(), type=list[Volume])
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise Unavailable(f"cannot read {path}: {error.strerror}; run as root") from error
    except msgspec.MsgspecError as error:
        raise StorageError(
            f"{path} is damaged: {error}; move it away and create the volumes again"
        ) from error
    return {volume.name: volume for volume in volumes}
