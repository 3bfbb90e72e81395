"""Removing what nothing needs any more, beside those who read and write.

The process that collects reads the log itself, and decides. What it decided is done in slices, each a short
transaction of whoever writes the log: the log writer of a running worker, or the command itself when none
runs (`Carrier`). So neither marking nor compressing costs the worker anything.

retention  which versions of a store stay, and which rows go with the others
marking    which contents are needed
layout     to which newer content each superseded one is to be a delta
recoding   making them so
slices     what is done to the rows, in one transaction each
in_use     what may come into use again while this goes on
collector  the steps in their order, and their pace
report     what was freed

The race that matters: between the moment at which a content was found to be unneeded and the slice that
deletes it, somebody may write the same bytes again, and find the blob there. So whoever writes the log notes
each digest that is named from the beginning of the collection on, and the slice passes over those (`in_use`).
"""

from engramfs.history.collection.collector import collect
from engramfs.history.collection.report import Collected

__all__ = ["Collected", "collect"]
