"""What is wrong with an installation, or could be: one check a function, and what to do about each finding.

installation   what is looked at: places, configuration, the daemon if one answers
finding        ok, note or problem
kernel         what the kernel can do
fuse           the device, and mounting without root
limits         open files, their size, address space, mounts
stale_mounts   mounts whose daemon is dead
running        run directory, keeper, worker, what failed
state          schema, lock, journal, what was left behind, the log's size, the clock
disk           space, the kind of filesystem, whether fsync reaches a disk
settings       the configuration file, and whether secrets are looked for

Nothing is changed, and no mounted filesystem of ours is touched but by a helper with a time limit.
"""

from collections.abc import Callable, Iterator

from engramfs.daemon.doctor import disk, fuse, kernel, limits, running, settings, stale_mounts, state
from engramfs.daemon.doctor.finding import Finding, problem
from engramfs.daemon.doctor.installation import Installation, installation_at
from engramfs.errors import EngramError

Check = Callable[[Installation], Iterator[Finding]]

CHECKS: dict[str, Check] = {
    "takeover": kernel.check_takeover,
    "switching": kernel.check_mounting_beneath,
    "fuse device": fuse.check_device,
    "fusermount3": fuse.check_fusermount,
    "fuse.conf": fuse.check_other_users,
    "open files": limits.check_open_files,
    "file size": limits.check_file_size,
    "memory": limits.check_address_space,
    "mounts": limits.check_mounts,
    "stale mounts": stale_mounts.check_stale_mounts,
    "configuration": settings.check_configuration,
    "secrets": settings.check_secrets,
    "run directory": running.check_run_directory,
    "daemon": running.check_daemon,
    "failures": running.check_failures,
    "filesystem": disk.check_filesystem,
    "space": disk.check_space,
    "fsync": disk.check_sync,
    "schema": state.check_schema,
    "lock": state.check_lock,
    "journal": state.check_journal,
    "log": state.check_log,
    "clock": state.check_clock,
    "leftovers": state.check_leftovers,
}

__all__ = ["CHECKS", "Finding", "Installation", "examine", "installation_at"]


def examine(installation: Installation) -> Iterator[tuple[str, Finding]]:
    """Every finding, with the name of its check. A check that cannot be made is a problem of its own."""
    for name, check in CHECKS.items():
        try:
            for finding in check(installation):
                yield name, finding
        except EngramError as error:
            what, _, do = error.message.rpartition("; ")
            yield name, problem(what or error.message, "it cannot be looked at", do or "see the message")
        except OSError as error:
            what = f"{error.filename or 'the system'}: {error.strerror or error}"
            yield name, problem(what, "it cannot be looked at", "run engramfs doctor as the daemon's user")
