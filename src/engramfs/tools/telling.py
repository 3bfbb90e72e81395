"""What an agent hears of an error: what it says to people, without any path of the host.

A person finds the whole of it in the log of this process, if it keeps one.
"""

import os
import re

from engramfs import telemetry
from engramfs.daemon.paths import Locations
from engramfs.errors import (
    Busy,
    ConfigurationError,
    EngramError,
    NoDaemon,
    OtherState,
    StorageError,
    Unanswered,
    Unavailable,
)

_BELOW = r"(?:/[^\s;,:'\"()]*)?(?![\w-])"
_ANY_PATH = re.compile(r"(?<![\w./:@~-])/[^\s;,:'\"()]+")
# These speak of the host alone, and never of what an agent named.
_OF_THE_HOST = (Busy, ConfigurationError, NoDaemon, OtherState, StorageError, Unanswered, Unavailable)


def told(error: EngramError, locations: Locations) -> str:
    """What `error` says. Where that names a path of the host, the log is given the path."""
    said = error.message or type(error).__name__
    heard = without_host_paths(said, locations)
    if isinstance(error, _OF_THE_HOST) or type(error) is EngramError:
        heard = _ANY_PATH.sub("a path of the host", heard)
    if heard != said and telemetry.is_configured():
        telemetry.logger("tools").warning("an agent was told of an error", code=error.code, message=said)
    return heard


def without_host_paths(text: str, locations: Locations) -> str:
    """`text` with names in the place of where the state, the run directory and the configuration are."""
    places = {
        locations.state: "the state directory",
        locations.run: "the run directory",
        locations.config: "the configuration",
    }
    real = {os.path.realpath(path): name for path, name in places.items()}
    for path, name in sorted({**real, **places}.items(), key=lambda each: -len(each[0])):
        text = re.sub(re.escape(path) + _BELOW, name, text)
    return text
