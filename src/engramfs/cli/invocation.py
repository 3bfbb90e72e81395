"""What a command line says beside its command: the global options, and what follows from them."""

from typing import TYPE_CHECKING

import click

from engramfs.cli.output import Output

if TYPE_CHECKING:
    from engramfs.client import Client
    from engramfs.daemon.client import ControlClient
    from engramfs.daemon.config import Config
    from engramfs.daemon.paths import Locations


class Invocation:
    """One command line. The options are filled in while it is parsed, and only read afterwards."""

    def __init__(self) -> None:
        self.state: str | None = None
        self.run: str | None = None
        self.config: str | None = None
        self.json = False

    @property
    def locations(self) -> "Locations":
        from engramfs.daemon.paths import locate

        return locate(self.state, self.run, self.config)

    @property
    def client(self) -> "ControlClient":
        """The daemon at the run directory; its calls raise `Conflict` when it serves another state."""
        from engramfs.daemon.client import ControlClient

        return ControlClient(self.locations.run, state=self.locations.state)

    def opened(self) -> "Client":
        """The stores and the daemon as programs have them; close it. Notes for a person go to stderr."""
        from engramfs.client import Client

        note = self.output.note
        return Client(self.state, self.run, self.config, note=lambda what: note(f"engramfs: {what}"))

    @property
    def output(self) -> Output:
        return Output(json=self.json)

    def configuration(self) -> "Config":
        """The configuration. Raises `ConfigurationError`."""
        from engramfs.daemon.config import load

        locations = self.locations
        return load(locations.config, required=locations.config_required)


pass_invocation = click.make_pass_decorator(Invocation, ensure=True)
