"""The run directory, and the daemon that should be there."""

import os
from collections.abc import Iterator
from typing import Any

from engramfs.daemon.doctor.finding import Finding, note, ok, problem
from engramfs.daemon.doctor.installation import Installation
from engramfs.daemon.run_directory import keeper_of
from engramfs.errors import Conflict, NoDaemon
from engramfs.mount.mountinfo import read_mounts, top_mount


def check_run_directory(installation: Installation) -> Iterator[Finding]:
    run = installation.locations.run
    try:
        found = os.stat(run)
    except FileNotFoundError:
        yield ok(f"{run} is not there yet; a daemon makes it")
        return
    if found.st_uid != installation.uid:
        yield problem(
            f"{run} belongs to uid {found.st_uid}",
            "a daemon of yours refuses to use it",
            "choose another place with --run, or run engramfs as that user",
        )
    elif found.st_mode & 0o077:
        yield problem(
            f"{run} has the mode {found.st_mode & 0o7777:o}",
            "other users reach the mounts of every session below it",
            f"chmod 700 {run}",
        )
    else:
        yield ok(f"{run} is private")


def check_daemon(installation: Installation) -> Iterator[Finding]:
    run, status, silence = installation.locations.run, installation.status, installation.silence
    keeper = keeper_of(run) if os.path.isdir(run) else None
    if status is not None:
        yield from _answering(status, keeper)
    elif isinstance(silence, Conflict):
        found, _, do = silence.message.partition("; ")
        yield problem(found, "commands about this state are refused while it runs", do)
    elif isinstance(silence, NoDaemon) and keeper is not None:
        yield problem(
            f"the keeper in {run} runs (pid {keeper}) and its worker does not answer",
            "calls in the mounts wait until it does",
            f"see {run}/daemon.log; engramfs down, then engramfs up",
        )
    elif isinstance(silence, NoDaemon):
        yield ok("no daemon runs; engramfs up starts one")
    elif silence is not None:
        found, _, do = silence.message.partition("; ")
        yield problem(found, "what commands ask of it may wait too", do or f"see {run}/daemon.log")


def _answering(status: dict[str, Any], keeper: int | None) -> Iterator[Finding]:
    worker = status["worker"]
    if keeper is None:
        yield problem(
            f"the worker (pid {worker['pid']}) serves without a keeper",
            "if it dies, its mounts die with it",
            "engramfs up gives it another keeper, which takes it in",
        )
        return
    if not _is_hub(status["mount"], worker["pid"]):
        yield problem(
            f"{status['mount']} was unmounted, or is covered, while the daemon serves",
            "sessions that are attached go on; nothing can be attached any more",
            "engramfs down, then engramfs up",
        )
    elif not _is_hub(status["mount"]):
        yield note(
            f"{status['mount']} is not mounted in this mount namespace",
            "the daemon runs in another one: what it attaches here may not be seen",
            "start it where its mounts are wanted: engramfs down, then engramfs up",
        )
    if worker["restarts"]:
        why = f"; the last crash: {worker['last_crash']}" if worker.get("last_crash") else ""
        yield note(
            f"the worker was restarted {worker['restarts']} times since its keeper started{why}",
            "sandboxes did not notice, but something ended it",
            "see daemon.log in the run directory, or journalctl, for what it said",
        )
        return
    yield ok(f"a daemon serves (worker pid {worker['pid']}, since {worker['started']})")


def _is_hub(point: str, process: int | None = None) -> bool:
    """Whether the hub is at `point`, here or as `process` has it."""
    mount = top_mount(read_mounts(process), point)
    return mount is not None and mount.is_ours


def check_failures(installation: Installation) -> Iterator[Finding]:
    if installation.status is None:
        return
    failures = installation.status["failures"]
    if not failures:
        yield ok("nothing failed or was refused since the daemon started")
        return
    last = failures[-1]
    where = f"{last['store']}: " if last["store"] else ""
    yield note(
        f"{len(failures)} times something failed or was refused; at {last['time']}: {where}{last['what']}",
        "an agent's write may not be what it expects",
        "engramfs status lists them; .versions/status in a mount says it of one store",
    )
