"""What the filesystem is: views of stores, their trees, open files and batches. Knows no pyfuse3.

    attributes    the values that views answer with
    node          a file or directory in memory
    store_tree    the live tree of one store, shared by its views
    batch         what one author changed since the last version
    cut           a batch, described as a commit
    live_store    a tree, its batch, its journal records and its views
    restating     what a version leaves out, kept in the journal
    log_writer    the one thread that writes to the log
    spool         the bytes of one open, dirty file
    unrecorded    which inodes have bytes that only a spool has
    orphans       files without a name that may still be open
    content       reading content out of nodes and blobs
    view          what every view answers; refuses every write
    live_view     the head of a store, read-only
    writable_view the head of a store, for one session
    renaming      whether a rename makes sense
    pinned_view   a store at one version
    versions_view the hidden directory `.versions`
    synthetic     directories that hold views: the hub, and a session's read-only parents
    filesystem    all of these, found by inode number
    recovery      from the journal back to where we were
    resuming      the same with what was open, when a connection is taken over

Concurrency. Everything here runs on the thread of the event loop, and what does not `await` is atomic.
Only three things wait: a content of over 64 KiB becoming a blob, a digest over more than a MiB, and a
version being sealed. What may have changed meanwhile is looked at again afterwards; where, and why
that is enough, is numbered in `writable_view`.
"""
