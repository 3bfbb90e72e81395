"""What deploy/ and examples/ hold is valid, and agrees with the program and with itself."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml

from engramfs.cli.main import MODULES
from engramfs.daemon.config import load

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
PROGRAMS = Path(sys.executable).parent  # hadolint and shellcheck come as Python packages
KUBERNETES = [path for path in (DEPLOY / "kubernetes").glob("*.yaml") if path.name != "kustomization.yaml"]
EXAMPLE = ROOT / "examples/agent"
CAPABILITIES = {"SYS_ADMIN", "SYS_CHROOT", "SYS_PTRACE", "DAC_OVERRIDE"}


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def read(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(path.read_text())
    return document


@pytest.mark.parametrize("path", [DEPLOY / "engramfs.toml", DEPLOY / "kubernetes/engramfs.toml"], ids=str)
def test_the_configurations_are_understood_and_know_the_example_agent(path: Path) -> None:
    assert load(str(path)).agent("digest").scope == "actor"


def test_the_dockerfile_is_sound() -> None:
    done = run(PROGRAMS / "hadolint", DEPLOY / "Dockerfile")
    assert (done.returncode, done.stdout) == (0, "")


def test_the_image_is_made_of_files_that_exist() -> None:
    dockerfile = (DEPLOY / "Dockerfile").read_text()
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    copied = [
        name for line in re.findall(r"^COPY (?!--)(.*) \S+$", dockerfile, re.M) for name in line.split()
    ]
    assert copied
    for name in copied:
        assert (ROOT / name).exists()
        assert f"!{name}" in ignored


@pytest.mark.parametrize("script", [EXAMPLE / "agent.sh", ROOT / "tools/setup.sh"], ids=str)
def test_the_shell_scripts_are_sound(script: Path) -> None:
    done = run(PROGRAMS / "shellcheck", script)
    assert (done.returncode, done.stdout) == (0, "")


# Compose


def test_the_compose_file_is_valid() -> None:
    schema = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    done = run(*schema, DEPLOY / "compose.yaml")
    assert done.returncode == 0, done.stdout


def test_compose_hands_mounts_from_the_daemon_to_the_agent() -> None:
    services = read(DEPLOY / "compose.yaml")["services"]
    propagation = {
        name: {
            volume["source"]: volume["bind"]["propagation"]
            for volume in service["volumes"]
            if isinstance(volume, dict)
        }
        for name, service in services.items()
    }
    assert propagation == {
        "daemon": {"/run/engramfs-sandboxes": "rshared"},
        "agent": {"/run/engramfs-sandboxes/alice": "rslave"},
    }


def test_compose_and_systemd_give_the_daemon_the_same_capabilities() -> None:
    service = (ROOT / "systemd/engramfs.service").read_text()
    (bounding,) = re.findall(r"^CapabilityBoundingSet=(.*)$", service, re.M)
    assert {name.removeprefix("CAP_") for name in bounding.split()} == CAPABILITIES
    daemon = read(DEPLOY / "compose.yaml")["services"]["daemon"]
    assert set(daemon["cap_add"]) == CAPABILITIES
    assert daemon["cap_drop"] == ["ALL"]
    assert not daemon.get("privileged")


def test_the_agent_of_compose_has_no_privileges() -> None:
    agent = read(DEPLOY / "compose.yaml")["services"]["agent"]
    assert (agent["cap_drop"], agent.get("cap_add"), agent["user"]) == (["ALL"], None, "12345:12345")


def test_files_that_compose_binds_exist() -> None:
    for service in read(DEPLOY / "compose.yaml")["services"].values():
        for volume in service["volumes"]:
            if isinstance(volume, str) and volume.startswith("."):
                assert (DEPLOY / volume.split(":")[0]).exists()


# Kubernetes


def validated(path: Path) -> dict[str, Any]:
    """The resource in a file, valid by the newest schema of Kubernetes that is at hand."""
    document = read(path)
    kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)
    return document


@pytest.mark.parametrize("path", [*KUBERNETES, EXAMPLE / "pod.yaml"], ids=lambda path: path.name)
def test_the_kubernetes_manifests_are_valid(path: Path) -> None:
    assert validated(path)["kind"] in {"Namespace", "DaemonSet", "Pod"}


def test_and_an_invalid_one_would_be_found(tmp_path: Path) -> None:
    broken = (DEPLOY / "kubernetes/daemonset.yaml").read_text().replace("mountPropagation", "mountProbation")
    (tmp_path / "broken.yaml").write_text(broken)
    with pytest.raises(kubernetes_validate.ValidationError):
        validated(tmp_path / "broken.yaml")


def test_what_kustomize_puts_together_exists() -> None:
    for directory in (DEPLOY / "kubernetes", EXAMPLE):
        kustomization = read(directory / "kustomization.yaml")
        generated = [name for each in kustomization["configMapGenerator"] for name in each["files"]]
        patches = [patch["path"] for patch in kustomization.get("patches", [])]
        for name in [*kustomization["resources"], *generated, *patches]:
            assert (directory / name).exists()


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")
def test_kustomize_builds_valid_resources() -> None:
    done = run("kubectl", "kustomize", EXAMPLE)
    assert done.returncode == 0, done.stderr
    resources = list(yaml.safe_load_all(done.stdout))
    for resource in resources:
        kubernetes_validate.validate(resource, kubernetes_validate.latest_version(), strict=True)
    kinds = sorted(resource["kind"] for resource in resources)
    assert kinds == ["ConfigMap", "ConfigMap", "DaemonSet", "Namespace", "Pod"]
    assert {resource["metadata"].get("namespace", "engramfs") for resource in resources} == {"engramfs"}


def pod_spec(document: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = document["spec"]
    return spec["template"]["spec"] if "template" in spec else spec


def host_mounts(document: dict[str, Any]) -> dict[str, str]:
    """Directories of the node that a pod's containers share with it, and how mounts propagate."""
    spec = pod_spec(document)
    directories = {each["name"]: each["hostPath"]["path"] for each in spec["volumes"] if "hostPath" in each}
    return {
        directories[mount["name"]]: mount.get("mountPropagation", "None")
        for container in spec["containers"]
        for mount in container["volumeMounts"]
        if mount["name"] in directories
    }


def test_kubernetes_hands_mounts_from_the_daemon_to_the_agent() -> None:
    daemon, agent = read(DEPLOY / "kubernetes/daemonset.yaml"), read(EXAMPLE / "pod.yaml")
    assert host_mounts(daemon) == {
        "/var/lib/engramfs": "None",
        "/run/engramfs-sandboxes": "Bidirectional",
    }
    assert host_mounts(agent) == {"/run/engramfs-sandboxes/alice": "HostToContainer"}


def test_only_the_daemon_is_privileged() -> None:
    (daemon,) = pod_spec(read(DEPLOY / "kubernetes/daemonset.yaml"))["containers"]
    assert daemon["securityContext"]["privileged"], "or Kubernetes refuses Bidirectional"
    agent = pod_spec(read(EXAMPLE / "pod.yaml"))
    assert agent["securityContext"]["runAsNonRoot"]
    for container in [*agent["initContainers"], *agent["containers"]]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }


# The commands in all of them


def commands() -> set[tuple[str, ...]]:
    """Every command line of engramfs in the manifests."""
    texts = [(DEPLOY / "compose.yaml"), EXAMPLE / "session.yaml", DEPLOY / "kubernetes/daemonset.yaml"]
    found: set[tuple[str, ...]] = set()
    for text in texts:
        for line in text.read_text().splitlines():
            if not line.lstrip().startswith("#"):
                for command in re.findall(r"(?<![/\w])engramfs[, ]+([a-z][^\]>]*)", line):
                    found.add(tuple(command.replace(",", " ").split()))
    return found


def test_the_manifests_call_commands_and_options_that_exist() -> None:
    found = commands()
    assert {command[0] for command in found} == {"daemon", "import", "session", "stat", "status", "up"}
    for name, *arguments in found:
        assert name in MODULES
        group = arguments[:1] if name == "session" else []
        described = run(sys.executable, "-m", "engramfs", name, *group, "--help").stdout
        for option in arguments:
            assert not option.startswith("--") or option in described, f"{option} of {name}"
