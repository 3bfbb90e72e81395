"""The configuration file, and what it needs installed."""

import os
from collections.abc import Iterator

from engramfs.daemon.config import load
from engramfs.daemon.doctor.finding import Finding, note, ok, problem
from engramfs.daemon.doctor.installation import Installation
from engramfs.errors import ConfigurationError
from engramfs.history import hygiene


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


def check_secrets(_installation: Installation) -> Iterator[Finding]:
    if hygiene.is_available():
        yield ok("what is written is looked through for secrets")
    else:
        yield note(
            "the extra [secrets] is not installed",
            "no version gets the flag secret, and no store can be told to refuse secrets",
            "pip install 'engramfs[secrets]'",
        )
