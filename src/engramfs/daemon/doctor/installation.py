"""What is examined: where things are, and what the daemon says, asked once."""

import os
from typing import Any

import msgspec

from engramfs.daemon.client import ControlClient
from engramfs.daemon.config import Config, load
from engramfs.daemon.paths import Locations
from engramfs.errors import ConfigurationError, EngramError

_PATIENCE = 5.0  # seconds for the daemon to answer


class Installation(msgspec.Struct, frozen=True):
    """`worker` is the pid of the worker that serves this state, if one answers, and `status` what it says.

    `silence` says why one of the two is missing. A configuration that is wrong counts as the default.
    """

    locations: Locations
    config: Config
    uid: int
    worker: int | None
    status: dict[str, Any] | None
    silence: EngramError | None

    @property
    def has_state(self) -> bool:
        """Whether the state directory has a log."""
        return os.path.exists(os.path.join(self.locations.state, "log", "data.mdb"))


def installation_at(locations: Locations) -> Installation:
    """The installation at those places; a daemon that hangs is waited for a few seconds."""
    try:
        config = load(locations.config, required=locations.config_required)
    except ConfigurationError:
        config = Config()
    client = ControlClient(locations.run, timeout=_PATIENCE, state=locations.state)
    worker, status, silence = None, None, None
    try:
        worker = int(client.call("ping")["pid"])
        status = client.call("status")
    except EngramError as error:
        silence = error
    return Installation(locations, config, os.geteuid(), worker, status, silence)
