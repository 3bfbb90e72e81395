"""How fast, and how large: engramfs beside its peers, measured in one run. Asserts nothing.

python -m tests.bench [--json PATH] [--directory DIR] [--only WORD]

__main__      a private namespace around the run, and a temporary directory under it
contenders    ext4, bindfs, JuiceFS and engramfs, each as a directory to work in
daemon        `engramfs up`, its worker and its stores
stores        states with very many versions, stores or files, written without a mount
rounds        contenders in turns, so that a busy machine hurts all of them alike
file_work     what is done in a directory: open and read, grep, stat, create, append, save
peers         the figures that are measured against other filesystems
scale         the figures that are measured against engramfs itself when it holds very much
history       log, blame and diff of histories that hold very much, beside git
git_history   the same histories as git repositories
figures       a measured value, its target, and whether it was reached
report        the table, and the same as JSON
"""
