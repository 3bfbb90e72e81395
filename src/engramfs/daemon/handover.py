"""How a keeper and a worker speak: systemd's protocol for descriptors and notifications.

The keeper (ours, or systemd itself) starts the worker with open descriptors from 3 on, `LISTEN_FDS`
saying how many, `LISTEN_FDNAMES` what they are and `LISTEN_PID` for whom. The worker answers with
datagrams to `NOTIFY_SOCKET`: `READY=1`, `STATUS=…`, `STOPPING=1`, and every now and then `WATCHDOG=1`.
With `FDSTORE=1` comes the connection, by the name under which the next worker is to have it.
See sd_listen_fds(3), sd_notify(3), sd_pid_notify_with_fds(3), sd_watchdog_enabled(3).

The worker's side is here, and `start`; what the keeper hears is in `notifications`. Under systemd the
keeper is on the other side too: see `service_manager`. Imports only the standard library and one system
call: the keeper stays small.
"""

import array
import contextlib
import fcntl
import json
import os
import signal
import socket
from collections.abc import Mapping, MutableMapping, Sequence
from typing import NoReturn

from engramfs.mount.syscalls import die_with_parent

FIRST_DESCRIPTOR = 3
FUSE = "fuse"  # a connection that nobody has served yet
FUSE_SERVED = "fuse-served"  # one that a worker has served: to be taken over
TURN = "turn"  # a socket, for a worker that is started before it is needed: see `spare`
LOST = 71  # exit code of a worker whose mount has gone without its doing (EX_OSERR)
RESTART = 75  # exit code of a worker that makes room for another (EX_TEMPFAIL)


def received_descriptors(environment: MutableMapping[str, str] | None = None) -> dict[str, int]:
    """The descriptors passed to this process, by name; empty when none were passed to *it*.

    The variables are removed and the descriptors made close-on-exec, so that no child inherits either.
    """
    environment = os.environ if environment is None else environment
    pid, count, names = (environment.pop(f"LISTEN_{key}", "") for key in ("PID", "FDS", "FDNAMES"))
    if pid != str(os.getpid()) or not count.isdecimal():
        return {}
    found: dict[str, int] = {}
    listed = names.split(":") if names else []
    for index in range(int(count)):
        descriptor = FIRST_DESCRIPTOR + index
        os.set_inheritable(descriptor, False)
        found[listed[index] if index < len(listed) else f"unknown{index}"] = descriptor
    return found


def give_turn(turn: socket.socket, descriptors: Mapping[str, int], environment: Mapping[str, str]) -> None:
    """To a worker that was started early: serve now, with these descriptors, and these variables as well.

    Raises `OSError` when it has ended.
    """
    message = json.dumps({"descriptors": list(descriptors), "environment": dict(environment)})
    socket.send_fds(turn, [message.encode()], list(descriptors.values()))


def wait_for_turn(turn: int) -> dict[str, int]:
    """The worker's side: wait for as long as it takes; the descriptors, by name. None at all: not needed."""
    with socket.socket(fileno=turn) as waiting:
        data, received, _, _ = socket.recv_fds(waiting, 1 << 16, 8, socket.MSG_CMSG_CLOEXEC)
    if not data:
        return {}
    message = json.loads(data)
    os.environ.update(message["environment"])
    return dict(zip(message["descriptors"], received, strict=True))


def close_inherited() -> None:
    """Close what whoever started us had open: it may be a file of our own mount, which then waits for us.

    What this process opened, or took by `received_descriptors`, is close-on-exec and stays.
    """
    for name in os.listdir("/proc/self/fd"):
        descriptor = int(name)
        with contextlib.suppress(OSError):  # the one that listed them
            if descriptor >= FIRST_DESCRIPTOR and os.get_inheritable(descriptor):
                os.close(descriptor)


def notify(*lines: str) -> bool:
    """Send `lines` (such as "READY=1") to the keeper; False when there is none."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if address:
        send(address, *lines)
    return bool(address)


def hand_over(connection: int, *lines: str) -> bool:
    """Send `lines`, and a copy of the served `connection` for the next worker; False without a keeper."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if address:
        send(address, *stored(FUSE_SERVED), *lines, descriptors=[connection])
    return bool(address)


def stored(name: str) -> tuple[str, ...]:
    """What asks a service manager to keep the descriptor that comes along, and to pass it on as `name`.

    It is not to poll it: it would be woken by every request of the kernel.
    """
    return "FDSTORE=1", f"FDNAME={name}", "FDPOLL=0"


def keep_alive() -> bool:
    """Send WATCHDOG=1 without waiting; False when nobody takes it, which is no reason to stop working."""
    try:
        send(os.environ.get("NOTIFY_SOCKET", ""), "WATCHDOG=1", patience=0.0)
    except OSError:
        return False
    return True


def watchdog_interval(environment: Mapping[str, str] | None = None) -> float | None:
    """Seconds between two keep-alives: half of what this process is allowed. None: nobody asked for any."""
    environment = os.environ if environment is None else environment
    allowed = environment.get("WATCHDOG_USEC", "")
    if environment.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    return int(allowed) / 2e6 if allowed.isdecimal() and int(allowed) else None


def send(address: str, *lines: str, patience: float | None = None, descriptors: Sequence[int] = ()) -> None:
    """One datagram to the address of a `NOTIFY_SOCKET`, with copies of `descriptors`.

    `patience` is in seconds, None: as long as it takes. Raises `OSError`, `TimeoutError` among them.
    """
    if address.startswith("@"):
        address = "\0" + address[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
        sender.settimeout(patience)
        control = (
            [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
        )
        sender.sendmsg(["\n".join(lines).encode()], control, 0, address)


def start(
    command: Sequence[str], descriptors: Mapping[str, int], environment: Mapping[str, str], stderr: int
) -> int:
    """Start `command` with `descriptors` from 3 on, in their order and by their names; returns its pid.

    It runs in a session of its own, so that Ctrl-C reaches only the keeper, and gets SIGTERM when the
    keeper dies. The caller may have no other threads: this forks.
    """
    ours = os.getpid()
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    try:
        child = os.fork()
        if child == 0:
            _become(ours, command, descriptors, environment, stderr)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)
    return child


def _become(
    parent: int,
    command: Sequence[str],
    descriptors: Mapping[str, int],
    environment: Mapping[str, str],
    stderr: int,
) -> NoReturn:
    try:
        os.setsid()
        os.chdir("/")  # a working directory inside our own mount would make the worker wait for itself
        die_with_parent(signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(0)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, set())
        os.dup2(stderr, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        _place(list(descriptors.values()))
        passed = {
            "LISTEN_PID": str(os.getpid()),
            "LISTEN_FDS": str(len(descriptors)),
            "LISTEN_FDNAMES": ":".join(descriptors),
        }
        os.execvpe(command[0], list(command), {**environment, **passed})
    except BaseException as error:
        os.write(2, f"engramfs: cannot start {command[0]}: {error}\n".encode())
    finally:
        os._exit(127)


def _place(descriptors: Sequence[int]) -> None:
    """Duplicate `descriptors` to 3, 4, …, whatever numbers they have now."""
    above = FIRST_DESCRIPTOR + len(descriptors)
    copies = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, above) for descriptor in descriptors]
    for index, copy in enumerate(copies):
        os.dup2(copy, FIRST_DESCRIPTOR + index)
