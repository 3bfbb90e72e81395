"""What agents without a shell do with stores: tools, free of any transport or SDK.

offered          which tools a session is offered: name, arguments, description
call             a tool's call: arguments checked, errors with a code
telling          what an agent hears of an error

reach            what a session may read and write, by short names
context_files    list_context_files, read_context_file, write_context
session_tree     the files of a session under the paths of its mounts
records          memory_add, memory_update, memory_delete: one file each
record_files     where they are
record_history   what a record said before
known_records    what a text is to those that are there: known, a part of one, related
record_search    memory_search, memory_task_wait, and what memory_add compares with
memory           the tool `memory` of the Anthropic API: six commands on paths
memory_command   what each of them needs
memory_paths     where those paths lead
memory_text      the texts that models read
prompt           what an agent is told about all of it
"""
