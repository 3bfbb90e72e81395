"""systemd on the keeper's other side: what it passed to us, what it is told, and what it keeps.

The keeper hands on the worker's keep-alives, so that a watchdog bites when the worker no longer answers.
Readiness and the end are its own to tell: workers come and go meanwhile. It also hands on the connection,
into the descriptor store: so systemd keeps for the keeper what the keeper keeps for the worker, and a
keeper that is started again goes on with it. See sd_notify(3), FileDescriptorStoreMax= in
systemd.service(5).

Nothing here waits long or fails: a keeper goes on when nobody listens. Standard library only.
"""

import os
from collections.abc import Mapping, MutableMapping

from engramfs.daemon import handover
from engramfs.daemon.keeper_log import log
from engramfs.mount.liveness import wait_child

_PATIENCE = 5.0  # seconds for a service manager that does not read
_FORWARDED = ("STATUS", "WATCHDOG")
_UNIT = "ENGRAMFS_UNIT"  # what the unit file calls itself, in the environment


class ServiceManager:
    """Whoever started the keeper and listens on `NOTIFY_SOCKET`; without one, nobody is told anything.

    The variables are removed from `environment`: what the keeper starts has the keeper to tell.
    `control` is the descriptor of the control socket when it was passed, else None; `connection` that of
    the connection that an earlier keeper had stored. `has_stored` says whether it keeps one for the next.
    """

    def __init__(self, environment: MutableMapping[str, str]) -> None:
        passed = handover.received_descriptors(environment)
        self.control = passed.pop("control", None)
        self.connection = passed.pop(handover.FUSE_SERVED, None)
        self.has_stored = self.connection is not None
        for name, descriptor in passed.items():
            log(f"the service manager passed {name}, which is not known; closed")
            os.close(descriptor)
        self._interval = handover.watchdog_interval(environment)
        self._address = environment.pop("NOTIFY_SOCKET", "")
        self._unit = environment.pop(_UNIT, "")
        for variable in ("WATCHDOG_USEC", "WATCHDOG_PID"):
            environment.pop(variable, None)

    @property
    def watchdog(self) -> float | None:
        """Seconds within which the service manager wants a sign of life, or None."""
        return None if self._interval is None else self._interval * 2

    def forward(self, message: Mapping[str, str]) -> None:
        """Tell what a worker told, as far as it is true of the whole service."""
        wanted = [key for key in _FORWARDED if key != "WATCHDOG" or self._interval is not None]
        lines = [f"{key}={message[key]}" for key in wanted if key in message]
        if lines:
            self.tell(*lines)

    def tell(self, *lines: str, descriptors: tuple[int, ...] = ()) -> bool:
        """Send `lines`, such as "STOPPING=1"; whether somebody took them."""
        if not self._address:
            return False
        try:
            handover.send(self._address, *lines, patience=_PATIENCE, descriptors=descriptors)
        except OSError as error:
            log(f"the service manager cannot be told {lines[0]}: {error.strerror or error}")
            return False
        return True

    def store(self, connection: int) -> None:
        """Have a copy of the descriptor `connection` kept, which the next keeper gets if this one dies."""
        lines = handover.stored(handover.FUSE_SERVED)
        self.has_stored = self.tell(*lines, descriptors=(connection,)) or self.has_stored

    def forget(self) -> None:
        """Have it closed: the connection is at its end."""
        if self.has_stored:
            self.tell("FDSTOREREMOVE=1", f"FDNAME={handover.FUSE_SERVED}")
            self.has_stored = False

    def starts_another(self) -> bool:
        """Whether this stop is the first half of a restart, so that another keeper gets what is stored."""
        if not self.has_stored or not self._unit:
            return False
        return " restart " in _jobs_of(self._unit)


def _jobs_of(unit: str) -> str:
    """What systemd is about to do with a unit, as `systemctl list-jobs` says; empty when it does not say."""
    reading, writing = os.pipe()
    command = ["systemctl", "list-jobs", "--no-legend", "--plain", "--full", unit]
    try:
        child = os.posix_spawnp(
            command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, writing, 1)]
        )
    except OSError as error:
        log(f"cannot ask systemctl whether another daemon follows: {error.strerror}")
        os.close(writing)
        os.close(reading)
        return ""
    os.close(writing)
    with open(reading, encoding="utf-8", errors="replace") as said:
        return said.read() if wait_child(child, _PATIENCE) == 0 else ""
