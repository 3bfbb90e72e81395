"""A file, or the names in a directory, that are to survive the loss of power."""

import os


def make_durable(path: str) -> None:
    """Sync the file or directory `path`. Raises `OSError`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
