"""The log of a store: commit, read, compare, restore, check. Knows nothing of mounts or the kernel.

repository   a state directory, opened
catalog      which stores there are
commit       one batch becomes one version
tree         a store's tree at its head or at a version
log          versions and their changes, newest first
claims       what a session really wrote
diff         what differs between two trees
graft        what makes the head equal to a wanted tree, below a path
restore      an old tree or file becomes the head again
importing    a plain directory becomes a store's tree (plain_directory, file_contents, stored_contents)
exporting    a store's tree becomes a plain directory
git          a store's history becomes a git repository, and the other way round
verify       whether everything that was recorded is still so
backup       a consistent copy while others write
backup_restore  a backup takes the place of a state directory
transplant   a store of another state directory comes into this one
shared_history  what two logs have of one history
migration    a state directory of an older schema is brought to the present one
"""
