"""What the filesystem is: views of stores, their trees, open files and batches. Knows no pyfuse3.

    attributes      the values that views answer with
    node            a file or directory in memory
    store_tree      the live tree of one store, shared by its views
    batch, cut      what one author changed since the last version; the same, described as a commit
    live_store      a tree, its batch, its journal records and its views
    held_still, absorbing
                    a commit that comes another way: nothing is recorded meanwhile; the tree takes it over
    restating       what a version leaves out, kept in the journal
    log_writer      the one thread that writes to the log
    open_file, spool, recording
                    a file that is open for writing, its bytes, and how they are recorded
    failed_closes, losing
                    what found no room when it was closed, recorded later; what is lost, said by name
    unrecorded      which inodes have bytes that only a spool has, and of which such bytes were lost
    orphans         files without a name that may still be open
    content         reading content out of nodes and blobs
    view            what every view answers; refuses every write
    live_view       the head of a store, read-only
    writable_view   the head of a store, for one session
    renaming, extended_attributes, marks
                    whether a rename makes sense; `user.*`, stored; `user.engramfs.*`, read-only
    pinned_view     a store at one version
    versions_view   the hidden directory `.versions`
    synthetic       directories that hold views: the hub, and a session's read-only parents
    failures, recent
                    what went wrong or was refused, also before this worker; the same of one store
    view_numbers    which view has which number, also in the next worker
    filesystem      all of these, found by inode number
    invalidator     how the kernel is told that its caches are void
    resources       what all of these share
    recovery        from the journal back to where we were
    resuming, repeated
                    the same with what was open, when a connection is taken over; the call that comes again

Concurrency. Everything here runs on the thread of the event loop, and what does not `await` is atomic.
Only three things wait: a content of over 64 KiB becoming a blob, a digest over more than a MiB, and a
version being sealed. What may have changed meanwhile is looked at again afterwards; where, and why
that is enough, is numbered in `recording`.
"""
