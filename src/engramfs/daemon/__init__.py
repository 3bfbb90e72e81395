"""Composition: what turns the layers below into a running service.

config           the TOML file, decoded strictly
strict_toml      how: unknown keys, sizes, durations, errors of one line
paths            where the state, the run directory and the configuration are
scoping          which store becomes `/memories/user`
attachments      what a session shows, and where
rpc              JSON-RPC 2.0 messages, and errors as they cross the control socket
control_socket   the unix socket in the run directory
control          its server, in the worker
client           its client, in the command line
stores           stores as a whole: created, changed, archived, deleted, described
"""
