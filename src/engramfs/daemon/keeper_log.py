"""What the keeper says: one line on stderr for one event, and what its worker says."""

import contextlib
import os


def log(message: str) -> None:
    """Say one event."""
    copy_to_stderr(f"engramfs keeper: {message}\n".encode(errors="replace"))


def copy_to_stderr(data: bytes) -> None:
    """Write to stderr. A terminal that is gone or a disk that is full must not end the keeper."""
    with contextlib.suppress(OSError):
        while data:
            data = data[os.write(2, data) :]
