"""The configuration file."""

import os
from collections.abc import Iterator

from engramfs.daemon.config import load
from engramfs.daemon.doctor.finding import Finding, ok, problem
from engramfs.daemon.doctor.installation import Installation
from engramfs.errors import ConfigurationError


def check_configuration(installation: Installation) -> Iterator[Finding]:
    locations = installation.locations
    try:
        load(locations.config, required=locations.config_required)
    except ConfigurationError as error:
        yield problem(error.message, "no daemon starts with it", f"edit {locations.config}")
        return
    if os.path.lexists(locations.config):
        yield ok(f"{locations.config} is understood")
    else:
        yield ok(f"there is no {locations.config}; the defaults hold")
