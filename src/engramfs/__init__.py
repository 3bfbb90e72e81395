"""engramfs: the filesystem on which AI agents keep their memory.

The layers, from the top, each importing only from those below it:

    cli        the commands
    daemon     composition: configuration, keeper, worker, control socket, sessions
    mount      kernel mounts: attach, detach, mountinfo
    fuse       the pyfuse3 adapter
    vfs        what the filesystem is: views, trees, spools, batches
    history    commit, log, diff, restore, import, export, verify
    storage    the LMDB engine, blobs, the journal
    model      values, without I/O
    errors, telemetry
"""

__version__ = "0.1.0"
