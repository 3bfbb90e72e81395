"""engramfs: the filesystem on which AI agents keep their memory.

The layers, from the top, each importing only from those below it:

    cli        the commands
    client     for programs: typed, synchronous, with a daemon or without one
    daemon     composition: configuration, keeper, worker, control socket, sessions
    mount      kernel mounts: attach, detach, mountinfo
    fuse       the pyfuse3 adapter
    vfs        what the filesystem is: views, trees, spools, batches
    history    commit, log, diff, restore, import, export, verify
    storage    the LMDB engine, blobs, the journal
    model      values, without I/O
    errors, telemetry
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engramfs.client import Client as Client

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """`engramfs.Client`, loaded when it is asked for: commands that need none start without it."""
    if name != "Client":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return importlib.import_module("engramfs.client").Client
