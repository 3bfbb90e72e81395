"""The log of a store: commit, read, compare, restore, check. Knows nothing of mounts or the kernel.

repository   a state directory, opened
catalog      which stores there are
commit       one batch becomes one version
tree         a store's tree at its head or at a version
log          versions and their changes, newest first
diff         what differs between two trees
restore      an old tree or file becomes the head again
importing, exporting   whole trees from and to plain directories
verify       whether everything that was recorded is still so
"""
