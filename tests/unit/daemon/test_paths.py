"""An option wins over the environment, which wins over the default for root or for anyone else."""

from pathlib import Path

import pytest

from engramfs.daemon.paths import Locations, locate


def test_root_has_the_systems_directories() -> None:
    assert locate(environment={}, uid=0) == Locations(
        "/var/lib/engramfs", "/run/engramfs", "/etc/engramfs/engramfs.toml"
    )


def test_others_have_the_xdg_directories() -> None:
    environment = {"HOME": "/home/a", "XDG_RUNTIME_DIR": "/run/user/7", "XDG_CONFIG_HOME": "/conf"}
    assert locate(environment=environment, uid=7) == Locations(
        "/home/a/.local/state/engramfs", "/run/user/7/engramfs", "/conf/engramfs/engramfs.toml"
    )


def test_without_a_runtime_directory_the_run_directory_is_below_the_state() -> None:
    environment = {"HOME": "/home/a", "XDG_STATE_HOME": "relative is not allowed"}
    assert locate(environment=environment, uid=7).run == "/home/a/.local/state/engramfs/run"


def test_options_win_over_the_environment_and_are_made_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    environment = {"ENGRAMFS_STATE": "/e/state", "ENGRAMFS_RUN": "/e/run", "ENGRAMFS_CONFIG": "/e/c.toml"}
    assert locate(environment=environment, uid=0) == Locations("/e/state", "/e/run", "/e/c.toml", True)
    located = locate("s", "r", "c.toml", environment=environment, uid=0)
    assert located == Locations(f"{tmp_path}/s", f"{tmp_path}/r", f"{tmp_path}/c.toml", True)
    assert located.control == f"{tmp_path}/r/control"
    assert located.options() == ["--state", located.state, "--run", located.run, "--config", located.config]
