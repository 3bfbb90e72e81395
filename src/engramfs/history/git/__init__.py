"""The history of a store as a git repository, and the other way round. Git itself does git's part.

program        running git
paths          how git writes paths, and which it refuses to hold
signature      who made a commit, and when
authors        who made a version, as the author of a commit, and back
message        a version as a commit's message; what a message says of its version
edits          what a version changes, in terms of git's trees
fast_import    the stream that makes commits
destination    the repository that is written to
original       the commit that a version was made of
going_on       which version a repository ends with
exporting      a store's history becomes commits
fast_export    the stream that commits are read from
source         the repository that is read
commit_tree    the tree of the commit that was read last
building_on    which version the commits of a repository build on
importing      commits become versions

Git keeps less than a store does: no empty directories, one permission bit (executable or not), no
attributes, no hard links, and no name that could be taken for its own `.git`.
"""
