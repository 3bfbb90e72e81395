"""systemd on the keeper's other side: what it passed to us, and what it is told.

The keeper hands on the worker's keep-alives, so that a watchdog bites when the worker no longer answers.
Readiness and the end are its own to tell: workers come and go meanwhile. See sd_notify(3).

Nothing here waits long or fails: a keeper goes on when nobody listens. Standard library only.
"""

import os
from collections.abc import Mapping, MutableMapping

from engramfs.daemon import handover
from engramfs.daemon.keeper_log import log

_PATIENCE = 5.0  # seconds for a service manager that does not read
_FORWARDED = ("STATUS", "WATCHDOG")


class ServiceManager:
    """Whoever started the keeper and listens on `NOTIFY_SOCKET`; without one, nobody is told anything.

    The variables are removed from `environment`: what the keeper starts has the keeper to tell.
    `control` is the descriptor of the control socket when it was passed, else None.
    """

    def __init__(self, environment: MutableMapping[str, str]) -> None:
        passed = handover.received_descriptors(environment)
        self.control = passed.pop("control", None)
        for name, descriptor in passed.items():
            log(f"the service manager passed {name}, which is not known; closed")
            os.close(descriptor)
        self._interval = handover.watchdog_interval(environment)
        self._address = environment.pop("NOTIFY_SOCKET", "")
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

    def tell(self, *lines: str) -> None:
        """Send `lines`, such as "STOPPING=1"."""
        if not self._address:
            return
        try:
            handover.send(self._address, *lines, patience=_PATIENCE)
        except OSError as error:
            log(f"the service manager cannot be told {lines[0]}: {error.strerror or error}")
