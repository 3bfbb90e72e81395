"""What LMDB's exceptions mean, as errors of ours that name the place."""

import contextlib
import errno
import os
from collections.abc import Iterator

import lmdb

from engramfs.errors import Corrupt, StorageError, Unavailable, Unusable
from engramfs.storage.process_limits import NO_SPACE, no_address_space, no_room

DATA = "data.mdb"
_PROBE = b"\0" * (256 << 10)


@contextlib.contextmanager
def translated(directory: str) -> Iterator[None]:
    """Raise `Corrupt`, `Unusable`, `Full`, `Unavailable` or `StorageError` instead.

    `MapFullError` passes through.
    """
    try:
        yield
    except lmdb.MapFullError:
        raise
    except (lmdb.CorruptedError, lmdb.PageNotFoundError, lmdb.InvalidError) as error:
        raise Corrupt(
            f"the log in {directory} is damaged ({error}), so the stores in it cannot be served; "
            "put a backup (engramfs backup) in its place"
        ) from error
    except lmdb.PanicError as error:
        raise Unusable(
            f"the log in {directory} cannot be used any more by this process, a write to its first pages "
            "failed; see to the disk, then start engramfs again"
        ) from error
    except lmdb.VersionMismatchError as error:
        raise StorageError(
            f"the log in {directory} was written by another LMDB ({error}); use the engramfs that wrote it"
        ) from error
    except (lmdb.ReadonlyError, lmdb.LockError) as error:
        raise Unavailable(f"the log in {directory} cannot be opened ({error}); is it yours?") from error
    except lmdb.MemoryError as error:
        raise Unavailable(no_address_space(f"the log in {directory}")) from error
    except lmdb.Error as error:
        number = shortage(directory)
        if number is not None:
            raise no_room(f"the log in {directory}", number, ", then it is tried again") from error
        raise StorageError(f"the log in {directory} failed: {error}") from error


def shortage(directory: str) -> int | None:
    """Why the log there cannot grow, as an errno; None when it can.

    LMDB says "Input/output error" for a write that was cut short by a full disk, so ask the disk: a probe
    is written at the offset at which the log ends, which also finds a quota and a limit on file sizes.
    """
    probe = os.path.join(directory, f"probe.{os.getpid()}")
    try:
        end = os.stat(os.path.join(directory, DATA)).st_size
        descriptor = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            written = os.pwrite(descriptor, _PROBE, end)
            if written < len(_PROBE):  # up to where it ends; going on from there says why
                os.pwrite(descriptor, _PROBE[written:], end + written)
                return errno.ENOSPC
            return None
        finally:
            os.close(descriptor)
            os.unlink(probe)
    except OSError as error:
        return error.errno if error.errno in NO_SPACE else None
