"""Plain, frozen values that pass between the layers. No I/O, no state.

names        store names and the ids of actors, tenants and agents
times        moments as people write them
quantities   sizes and durations as people write them
access       what an attachment may do
author       who made a version
entry        what a name in a tree stands for
operation    one acknowledged step on a tree, as the journal keeps it
version      changes and versions
store        a store and its limits
reference    STORE@N:PATH
transient    names that live in their view and never enter the log
"""
