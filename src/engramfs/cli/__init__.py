"""The commands. Each is a module of its own, loaded when it is asked for.

main         the root command, exit codes, errors of one line
command      lazily loaded groups, and commands that take the global options anywhere
invocation   what a command line says beside its command
output       tables, colour and progress for people; JSON for programs
offline      the log, opened for reading or writing while no daemon runs
arguments    store names, sizes and their completion
tree_view    versions and trees as text

Container runtimes:
runtime_arguments   what they have to be given for a session that is there (session open --print)
oci_hook            a session for a container that is being made; oci_container reads what the runtime says
docker_plugin       volumes for Docker: docker_protocol is HTTP, docker_volumes what a volume is

Only light modules are imported at the top here: click, and engramfs itself without trio, LMDB, rich or
structlog. So `engramfs --help` answers in a fraction of 0.3 s.
"""
