"""Every error that engramfs raises on purpose, in one tree.

    EngramError                 EIO        exit 1  failed
    ├── UsageError              EINVAL     exit 2  usage
    │   ├── InvalidName         EINVAL     exit 2  invalid_name
    │   └── ConfigurationError  EINVAL     exit 2  configuration
    ├── NotFound                ENOENT     exit 3  not_found
    │   └── Redacted            ENODATA    exit 3  redacted
    ├── Conflict                EEXIST     exit 4  conflict
    │   ├── AlreadyExists       EEXIST     exit 4  exists
    │   ├── Stale               ESTALE     exit 4  stale
    │   ├── NotUnique           EEXIST     exit 4  not_unique
    │   ├── Busy                EBUSY      exit 4  busy
    │   └── OtherState          EEXIST     exit 4  other_state
    ├── Refused                 EPERM      exit 5  refused
    │   ├── ReadOnly            EROFS      exit 5  read_only
    │   ├── TooLarge            EFBIG      exit 5  too_large
    │   ├── Waits               EPERM      exit 5  pending
    │   ├── HoldsSecret         EPERM      exit 5  secret
    │   └── Archived            EROFS      exit 5  archived
    ├── NoDaemon                ENOTCONN   exit 6  no_daemon
    ├── Unanswered              EIO        exit 1  unanswered
    ├── Unavailable             ENODEV     exit 1  unavailable
    ├── StorageError            EIO        exit 1  storage
    │   ├── Corrupt             EIO        exit 1  corrupt
    │   ├── Unusable            EIO        exit 1  unusable
    │   └── Full                ENOSPC     exit 1  full
    └── PosixError              (given)    exit 1  posix
        └── one class for each answer that a filesystem call may get

Each class knows three things: the errno that a system call in a mount answers with, the exit code of
the command line, and its code on the control socket. Messages say what, why, and what to do.

This module imports nothing of engramfs and may be imported by every layer.
"""

import errno
from typing import ClassVar


class EngramError(Exception):
    """The root: something failed, and we know what."""

    errno: ClassVar[int] = errno.EIO
    exit_code: ClassVar[int] = 1
    code: ClassVar[str] = "failed"

    def __init__(self, message: str = "", **details: object) -> None:
        """`details` say the same to a program, as plain JSON: path and digest of what is stale, for one."""
        super().__init__(message)
        self.message = message
        self.details = details


class UsageError(EngramError):
    """What was asked makes no sense, whatever the state."""

    errno = errno.EINVAL
    exit_code = 2
    code = "usage"


class InvalidName(UsageError):
    """A store, actor, tenant or agent name that is not allowed."""

    code = "invalid_name"


class ConfigurationError(UsageError):
    """The configuration file cannot be understood."""

    code = "configuration"


class NotFound(EngramError):
    """The store, version, path or session does not exist."""

    errno = errno.ENOENT
    exit_code = 3
    code = "not_found"


class Redacted(NotFound):
    """The content was taken out of the history; that it was there is all that is known."""

    errno = errno.ENODATA
    code = "redacted"


class Conflict(EngramError):
    """What is there already stands in the way."""

    errno = errno.EEXIST
    exit_code = 4
    code = "conflict"


class AlreadyExists(Conflict):
    """The thing to create exists."""

    code = "exists"


class Stale(Conflict):
    """The head moved, or the view was revoked."""

    errno = errno.ESTALE
    code = "stale"


class NotUnique(Conflict):
    """The text to replace does not occur exactly once."""

    code = "not_unique"


class Busy(Conflict):
    """Another process holds the store lock or the mount."""

    errno = errno.EBUSY
    code = "busy"


class OtherState(Conflict):
    """The daemon at that place serves another state directory."""

    code = "other_state"


class Refused(EngramError):
    """Not allowed, by rule."""

    errno = errno.EPERM
    exit_code = 5
    code = "refused"


class ReadOnly(Refused):
    """A write to a `read_only` attachment, a pinned view or an old version."""

    errno = errno.EROFS
    code = "read_only"


class TooLarge(Refused):
    """More than one call, or one file of a call, may have."""

    errno = errno.EFBIG
    code = "too_large"


class Waits(Refused):
    """Not refused for good: a person decides, and until then nothing is written."""

    code = "pending"


class HoldsSecret(Refused):
    """What was to be written looks like a secret, and the store takes none."""

    code = "secret"


class Archived(Refused):
    """A write to an archived store."""

    errno = errno.EROFS
    code = "archived"


class NoDaemon(EngramError):
    """The command needs a running daemon."""

    errno = errno.ENOTCONN
    exit_code = 6
    code = "no_daemon"


class Unanswered(EngramError):
    """The daemon ended over what it was asked to do: it may have been done, or not."""

    code = "unanswered"


class Unavailable(EngramError):
    """The machine lacks something: /dev/fuse, fusermount3, a privilege, a kernel feature."""

    errno = errno.ENODEV
    code = "unavailable"


class StorageError(EngramError):
    """The journal or the log could not do what was asked."""

    code = "storage"


class Corrupt(StorageError):
    """Bytes on disk are not what was written."""

    code = "corrupt"


class Unusable(StorageError):
    """This process cannot use the log any more; another can."""

    code = "unusable"


class Full(StorageError):
    """The disk, or the journal's allowance, is used up."""

    errno = errno.ENOSPC
    code = "full"


class PosixError(EngramError):
    """An answer of the filesystem itself; the subclasses differ only in errno."""

    code = "posix"


class NoEntry(PosixError):
    errno = errno.ENOENT


class EntryExists(PosixError):
    errno = errno.EEXIST


class NotDirectory(PosixError):
    errno = errno.ENOTDIR


class IsDirectory(PosixError):
    errno = errno.EISDIR


class NotEmpty(PosixError):
    errno = errno.ENOTEMPTY


class NameTooLong(PosixError):
    errno = errno.ENAMETOOLONG


class FileTooLarge(PosixError):
    errno = errno.EFBIG


class QuotaExceeded(PosixError):
    errno = errno.EDQUOT


class CrossesViews(PosixError):
    errno = errno.EXDEV


class NotPermitted(PosixError):
    errno = errno.EPERM


class AccessDenied(PosixError):
    errno = errno.EACCES


class InvalidArgument(PosixError):
    errno = errno.EINVAL


class Unsupported(PosixError):
    errno = errno.EOPNOTSUPP


class NoAttribute(PosixError):
    errno = errno.ENODATA


class RangeTooSmall(PosixError):
    errno = errno.ERANGE


class TooManyLinks(PosixError):
    errno = errno.EMLINK
