"""Kernel mounts: the hub, the unprivileged mount, and putting a session's tree into a root directory.

    syscalls      mount(2), open_tree(2), move_mount(2), openat2(2) … with errors that say what failed
    mountinfo     what is mounted where, read from /proc
    liveness      whether anybody answers behind a mount, asked without risk of hanging
    hub           the one FUSE mount of a daemon: /dev/fuse, mount, unmount, abort
    connection    what is behind a mount: held, adopted, left, ended
    fusermount    the same without root, through fusermount3
    target        mount points resolved beneath a root directory
    place         where a session is attached: a root directory, perhaps of one process
    visit         work in the mount namespace of another process
    copying       copies of places in the hub, attached nowhere yet
    attach        a session's mounts, all or nothing
    detach        the same, taken off
    switch        one mount replaced in every place of a session, in all or in none
    holders       which sessions are still mounted somewhere
    sandbox       a mount namespace in which nothing is seen but one session
    reattach      every session's mounts again, after the hub was mounted afresh

Nothing here imports pyfuse3 or knows what the filesystem serves.
"""
