"""Bytes on disk: the ordered key-value engine, blobs and the journal. Knows nothing of versions or mounts.

protocol   what an engine must offer (a dozen methods)
keys       the canonical schema: every key and value family
lmdb_engine, lmdb_failures   the LMDB engine, and what its exceptions mean
blobs      content by SHA-256, in checked and compressed parts
journal    the file to which every acknowledged operation goes first
journal_scan   reading a journal that another process may be writing
durable    what makes a file or a directory survive the loss of power
process_limits   limits of the process that look like a full disk
lock       one writer for a state directory
"""
