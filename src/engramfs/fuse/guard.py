"""Every handler is wrapped: any exception but `FUSEError` out of a handler would end the mount."""

import errno
import functools
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pyfuse3
import structlog
import trio

from engramfs.errors import EngramError, StorageError
from engramfs.vfs.held_still import HeldStill

log = structlog.get_logger("engramfs.fuse")
Handler = TypeVar("Handler", bound=Callable[..., Awaitable[Any]])


def guarded(handler: Handler) -> Handler:
    """Answer errors of ours with their errno, and anything else with EIO and a traceback in the log."""

    @functools.wraps(handler)
    async def guarded_handler(*arguments: Any) -> Any:
        try:
            while True:
                try:
                    return await handler(*arguments)
                except HeldStill as held:  # nothing was recorded, so it is done anew
                    with trio.CancelScope(shield=True):
                        await held.until.wait()
        except pyfuse3.FUSEError:
            raise
        except EngramError as error:
            if isinstance(error, StorageError):
                details = {name: value for name, value in error.details.items() if name != "path"}
                log.error(error.message, operation=handler.__name__, **details)  # paths may be redacted later
                arguments[0].failed(handler.__name__, error, *arguments[1:3])
            raise pyfuse3.FUSEError(error.errno) from None
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                log.exception("a handler failed", operation=handler.__name__)
            raise pyfuse3.FUSEError(error.errno or errno.EIO) from None
        except Exception:
            log.exception("a handler failed", operation=handler.__name__)
            raise pyfuse3.FUSEError(errno.EIO) from None

    return guarded_handler  # type: ignore[return-value]
