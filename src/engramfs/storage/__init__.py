"""Bytes on disk: the ordered key-value engine, blobs and the journal. Knows nothing of versions or mounts.

protocol   what an engine must offer (a dozen methods)
keys       the canonical schema: every key and value family
lmdb       the LMDB engine
blobs      content by SHA-256, in checked and compressed parts
journal    the file to which every acknowledged operation goes first
lock       one writer for a state directory
"""
