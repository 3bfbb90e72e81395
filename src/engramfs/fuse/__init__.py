"""The pyfuse3 adapter: the only package that imports pyfuse3. It translates, and decides nothing.

operations   requests of the kernel to calls of views, and back
guard        what no handler may do: raise anything but an errno
readable     what makes pyfuse3's loop safe and fast
notifier     invalidations, from a thread of their own
teller       the process that tells the kernel of them
session      from a descriptor to a served filesystem
"""
