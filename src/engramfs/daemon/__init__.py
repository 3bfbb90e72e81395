"""Composition: what turns the layers below into a running service.

Configuration, pure:
    config           the TOML file, decoded strictly
    strict_toml      how: unknown keys, sizes, durations, errors of one line
    paths            where the state, the run directory and the configuration are
    scoping          which store becomes `/memories/user`
    attachments      what a session shows, and where
    attach_option    what is asked for beside that: STORE[@N]=PATH:ACCESS

The control socket:
    rpc              JSON-RPC 2.0 messages, and errors as they cross the socket
    control_socket   the unix socket in the run directory
    control          its server, in the worker
    client           its client, in the command line
    service          the methods that it offers
    session_methods  those about sessions
    stores           stores as a whole: created, changed, archived, deleted, described
    deploying        an agent's instructions and skills, into its store

Sessions:
    session          one sandbox run, as its file has it
    sessions         which views each sees
    first_use, seed  the stores that a session needs: made, claimed by their owner, given an AGENTS.md
    switching        another actor for a session
    holding          sessions that end with the process that opened them

The processes:
    keeper           holds the mount and the socket, and keeps a worker alive
    worker           one FUSE connection, one event loop
    single           the two for `engramfs mount DIR`, without root
    handover         how they speak: descriptors, notifications

What the keeper is made of, the standard library alone:
    events           what it waits for
    held_connection  the connection, from one worker to the next
    worker_process   one worker, and what it owes
    spare            another that waits, ready to take over
    notifications    what it hears of the worker
    probe            asks at the mount whether somebody serves it
    crashes          how long to wait after one, and when to give up
    reattaching      the child that attaches the sessions to a new mount
    predecessor      what an earlier keeper left
    adoption         the worker of a keeper that died
    run_directory    which keeper holds it, and what is in there
    service_manager  systemd, when it is what started the keeper
    keeper_log       what it says
"""
