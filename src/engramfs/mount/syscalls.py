"""The system calls about mounts that Python does not have, typed.

Each function raises `OSError` whose message starts with the name of the call and whose `filename` is
the path, where there is one. Calls release the GIL. Nothing here decides anything.

`setns` and a changed root concern the calling thread only after `unshare(CLONE_FS)` in that thread.
"""

import ctypes
import os

MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_REC = 0x4000
MS_PRIVATE = 0x40000
MNT_DETACH = 0x2
UMOUNT_NOFOLLOW = 0x8

CLONE_FS = 0x200
CLONE_NEWNS = 0x20000

AT_EMPTY_PATH = 0x1000
OPEN_TREE_CLONE = 0x1
MOVE_MOUNT_F_EMPTY_PATH = 0x4
MOVE_MOUNT_T_EMPTY_PATH = 0x40
MOVE_MOUNT_BENEATH = 0x200  # Linux 6.5
MOUNT_ATTR_RDONLY = 0x1
MOUNT_ATTR_NOSUID = 0x2
MOUNT_ATTR_NODEV = 0x4

RESOLVE_NO_MAGICLINKS = 0x2
RESOLVE_NO_SYMLINKS = 0x4
RESOLVE_BENEATH = 0x8
RESOLVE_IN_ROOT = 0x10

PR_SET_PDEATHSIG = 1
PR_CAPBSET_READ = 23
PR_CAPBSET_DROP = 24
CAP_DAC_READ_SEARCH = 2
CAP_SYS_PTRACE = 19

# Calls newer than 2019 have the same number on every architecture.
_OPEN_TREE = 428
_MOVE_MOUNT = 429
_FSOPEN = 430
_FSCONFIG = 431
_FSMOUNT = 432
_OPENAT2 = 437
_PIDFD_GETFD = 438
_MOUNT_SETATTR = 442

_FSCONFIG_CMD_CREATE = 6
_CLOEXEC = 1  # OPEN_TREE has O_CLOEXEC; fsopen and fsmount have a bit of their own

_libc = ctypes.CDLL(None, use_errno=True)


class _MountAttr(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "user_namespace"))


class _OpenHow(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in ("flags", "mode", "resolve"))


def _checked(result: int, what: str, path: str | None = None) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}", path)
    return result


def _syscall(what: str, path: str | None, number: int, *arguments: object) -> int:
    converted = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    return _checked(_libc.syscall(ctypes.c_long(number), *converted), what, path)


def mount(source: str, target: str, kind: str | None, flags: int, options: str = "") -> None:
    """mount(2)."""
    kind_bytes = kind.encode() if kind is not None else None
    result = _libc.mount(
        os.fsencode(source), os.fsencode(target), kind_bytes, ctypes.c_ulong(flags), options.encode()
    )
    _checked(result, "mount", target)


def umount2(target: str, flags: int = 0) -> None:
    """umount2(2)."""
    _checked(_libc.umount2(os.fsencode(target), ctypes.c_int(flags)), "umount2", target)


def setns(descriptor: int, kind: int) -> None:
    """setns(2): enter the namespace behind `descriptor`."""
    _checked(_libc.setns(ctypes.c_int(descriptor), ctypes.c_int(kind)), "setns")


def unshare(flags: int) -> None:
    """unshare(2)."""
    _checked(_libc.unshare(ctypes.c_int(flags)), "unshare")


def die_with_parent(signal_number: int) -> None:
    """prctl(PR_SET_PDEATHSIG): be sent `signal_number` when the parent thread ends."""
    _checked(_libc.prctl(PR_SET_PDEATHSIG, ctypes.c_ulong(signal_number), 0, 0, 0), "prctl")


def outlive_parent() -> None:
    """Take `die_with_parent` back."""
    die_with_parent(0)


def take_descriptor(process: int, descriptor: int) -> int:
    """pidfd_getfd(2): a copy of another process's descriptor; `process` is a pidfd."""
    return _syscall("pidfd_getfd", None, _PIDFD_GETFD, process, descriptor, 0)


def drop_capability(number: int) -> None:
    """prctl(PR_CAPBSET_DROP): no program that is executed from now on has the capability."""
    if _libc.prctl(PR_CAPBSET_READ, ctypes.c_ulong(number), 0, 0, 0) == 1:
        _checked(_libc.prctl(PR_CAPBSET_DROP, ctypes.c_ulong(number), 0, 0, 0), "prctl")


def set_filesystem_ids(uid: int, gid: int) -> None:
    """setfsgid(2), setfsuid(2): who this process is to filesystems. They report no errors."""
    _libc.setfsgid(ctypes.c_uint(gid))
    _libc.setfsuid(ctypes.c_uint(uid))


def open_tree(directory: int, path: str, *, clone: bool = True) -> int:
    """open_tree(2): a descriptor of the mount at `path`, or of a detached copy of it (`clone`)."""
    flags = os.O_CLOEXEC | (OPEN_TREE_CLONE if clone else 0) | (0 if path else AT_EMPTY_PATH)
    return _syscall("open_tree", path, _OPEN_TREE, directory, os.fsencode(path), flags)


def move_mount(tree: int, target: int, *, beneath: bool = False) -> None:
    """move_mount(2): put `tree` on the place behind the descriptor `target`, or beneath the mount there."""
    flags = MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH | (MOVE_MOUNT_BENEATH if beneath else 0)
    _syscall("move_mount", None, _MOVE_MOUNT, tree, b"", target, b"", flags)


def mount_setattr(tree: int, attributes: int, *, propagation: int = 0) -> None:
    """mount_setattr(2): set `attributes` (MOUNT_ATTR_…) and the propagation of the mount `tree`."""
    wanted = _MountAttr(attributes, 0, propagation, 0)
    size = ctypes.sizeof(wanted)
    _syscall("mount_setattr", None, _MOUNT_SETATTR, tree, b"", AT_EMPTY_PATH, ctypes.byref(wanted), size)


def detached_mount(kind: str) -> int:
    """A new mount of a filesystem without a device that is attached nowhere: fsopen(2), fsmount(2)."""
    context = _syscall("fsopen", None, _FSOPEN, kind.encode(), _CLOEXEC)
    try:
        _syscall("fsconfig", None, _FSCONFIG, context, _FSCONFIG_CMD_CREATE, None, None, 0)
        return _syscall("fsmount", None, _FSMOUNT, context, _CLOEXEC, 0)
    finally:
        os.close(context)


def openat2(directory: int, path: str, flags: int, resolve: int) -> int:
    """openat2(2): open `path` from `directory` under the rules `resolve` (RESOLVE_…)."""
    how = _OpenHow(flags | os.O_CLOEXEC, 0, resolve)
    size = ctypes.sizeof(how)
    return _syscall("openat2", path, _OPENAT2, directory, os.fsencode(path), ctypes.byref(how), size)
