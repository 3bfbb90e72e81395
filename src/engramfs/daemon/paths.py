"""Where the state, the run directory and the configuration are.

An option wins over the environment, which wins over the default: the system's directories for root,
those of the XDG base directory specification for anyone else.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Locations:
    """Absolute paths. `config_required` says that a person named the file, so it has to exist."""

    state: str
    run: str
    config: str
    config_required: bool = False

    @property
    def control(self) -> str:
        """The control socket."""
        return os.path.join(self.run, "control")

    @property
    def daemon_log(self) -> str:
        """What a daemon that `engramfs up` started says."""
        return os.path.join(self.run, "daemon.log")

    @property
    def failures(self) -> str:
        """What went wrong lately: a worker writes it for the next."""
        return os.path.join(self.run, "failures")

    def options(self) -> list[str]:
        """The command-line options that make another process use the same places."""
        named = ["--config", self.config] if self.config_required else []
        return ["--state", self.state, "--run", self.run, *named]


def locate(
    state: str | None = None,
    run: str | None = None,
    config: str | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    uid: int | None = None,
) -> Locations:
    """The locations for the given options. Touches nothing."""
    environment = os.environ if environment is None else environment
    uid = os.geteuid() if uid is None else uid
    defaults = _system() if uid == 0 else _xdg(environment)
    named = config or environment.get("ENGRAMFS_CONFIG")
    return Locations(
        state=os.path.abspath(state or environment.get("ENGRAMFS_STATE") or defaults.state),
        run=os.path.abspath(run or environment.get("ENGRAMFS_RUN") or defaults.run),
        config=os.path.abspath(named or defaults.config),
        config_required=bool(named),
    )


def _system() -> Locations:
    return Locations("/var/lib/engramfs", "/run/engramfs", "/etc/engramfs/engramfs.toml")


def _xdg(environment: Mapping[str, str]) -> Locations:
    home = environment.get("HOME") or os.path.expanduser("~")

    def base(variable: str, default: str) -> str:
        value = environment.get(variable, "")
        return value if os.path.isabs(value) else os.path.join(home, default)

    state = os.path.join(base("XDG_STATE_HOME", ".local/state"), "engramfs")
    runtime = environment.get("XDG_RUNTIME_DIR", "")
    # Without a runtime directory of its own, a run directory below the state is still private.
    run = os.path.join(runtime, "engramfs") if os.path.isabs(runtime) else os.path.join(state, "run")
    config = os.path.join(base("XDG_CONFIG_HOME", ".config"), "engramfs", "engramfs.toml")
    return Locations(state, run, config)
