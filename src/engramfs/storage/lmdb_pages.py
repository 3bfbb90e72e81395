"""The pages of LMDB's file, as version 0.9 lays them out on a little-endian machine of 64 bits.

LMDB gives no way to its list of free pages, nor to what is in a page beside its rows; both are needed to wipe
what was removed. So this reads the file itself, and refuses whatever it does not know: another magic number,
version, size or kind of page raises `Unavailable`.

A page is a header, then for a leaf or branch the offsets of its nodes (up to `lower`), a gap, and the nodes
(from `upper` on). A row that is too large for a leaf is in a run of pages of its own.
"""

import os
import struct
import sys
from array import array
from collections.abc import Iterator

import msgspec

from engramfs.errors import Unavailable

HEADER = 16  # bytes of a page
METAS = 2  # pages at the beginning of the file that say where the trees begin
_BRANCH, _LEAF, _OVERFLOW, _DIRTY = 1, 2, 4, 0x10
_BIG, _SUBTREE = 1, 2  # flags of a node
_NONE = (1 << 64) - 1  # the root of an empty tree
_MAGIC, _VERSION = 0xBEEFC0DE, 1

_META = struct.Struct("<IIQQ48s48sQQ")
_TREE = struct.Struct("<IHHQQQQQ")
_PAGE = struct.Struct("<QHHHH")
_NODE = struct.Struct("<HHHH")


class Tree(msgspec.Struct, frozen=True):
    """A database: how many pages it has, and its root; None when it is empty."""

    page_size: int
    pages: int
    root: int | None


class Meta(msgspec.Struct, frozen=True):
    """What one of the first two pages says: the state after transaction `transaction`."""

    transaction: int
    last_page: int
    free: Tree
    main: Tree


class Leaf(msgspec.Struct, frozen=True):
    """A node of a leaf. `big` is the first page of its value, where that has pages of its own."""

    key: bytes
    size: int
    value: bytes
    big: int | None
    is_tree: bool


class Page(msgspec.Struct, frozen=True):
    """A page of a tree; `children` of a branch are (first key, page), of a leaf there are `leaves`."""

    number: int
    raw: bytes
    lower: int
    upper: int
    is_leaf: bool

    @property
    def _offsets(self) -> tuple[int, ...]:
        return struct.unpack_from(f"<{(self.lower - HEADER) // 2}H", self.raw, HEADER)

    def children(self) -> Iterator[tuple[bytes, int]]:
        for offset in self._offsets:
            low, high, flags, key_size = _NODE.unpack_from(self.raw, offset)
            yield self.raw[offset + 8 : offset + 8 + key_size], low | high << 16 | flags << 32

    def leaves(self) -> Iterator[Leaf]:
        for offset in self._offsets:
            low, high, flags, key_size = _NODE.unpack_from(self.raw, offset)
            size, start = low | high << 16, offset + 8 + key_size
            key, is_tree = self.raw[offset + 8 : start], bool(flags & _SUBTREE)
            if flags & _BIG:
                yield Leaf(key, size, b"", int.from_bytes(self.raw[start : start + 8], "little"), is_tree)
            else:
                yield Leaf(key, size, self.raw[start : start + size], None, is_tree)

    def big_values(self) -> list[tuple[int, int]]:
        """(first page, bytes) of each value of a leaf that has pages of its own."""
        found = []
        for offset in self._offsets:
            low, high, flags, key_size = _NODE.unpack_from(self.raw, offset)
            if flags & _BIG:
                start = offset + 8 + key_size
                found.append((int.from_bytes(self.raw[start : start + 8], "little"), low | high << 16))
        return found

    def last_key(self) -> bytes:
        offset = self._offsets[-1]
        key_size = _NODE.unpack_from(self.raw, offset)[3]
        return self.raw[offset + 8 : offset + 8 + key_size]


class Pages:
    """The file, by page. What is read is consistent as far as the caller holds a transaction."""

    def __init__(self, descriptor: int, page_size: int) -> None:
        self.size = page_size
        self._descriptor = descriptor
        if sys.byteorder != "little" or struct.calcsize("P") != 8:
            raise Unavailable("the file of the log can be wiped on little-endian machines of 64 bits alone")

    def meta(self, transaction: int) -> Meta | None:
        """The state after that transaction, unless two others were committed since."""
        return next((meta for meta in self.metas() if meta.transaction == transaction), None)

    def metas(self) -> list[Meta]:
        return [self._meta(number) for number in range(METAS)]

    def _meta(self, number: int) -> Meta:
        raw = os.pread(self._descriptor, _META.size, number * self.size + HEADER)
        magic, version, _, _, free, main, last_page, transaction = _META.unpack(raw)
        page_size = _TREE.unpack(free)[0]  # of the free list's tree it has that place
        if (magic, version, page_size) != (_MAGIC, _VERSION, self.size):
            raise Unavailable("the log was written by another LMDB than 0.9; its file cannot be wiped")
        return Meta(transaction, last_page, self._tree(free), self._tree(main))

    def _tree(self, raw: bytes) -> Tree:
        _, _, _, branches, leaves, overflow, _, root = _TREE.unpack(raw)
        return Tree(self.size, branches + leaves + overflow, None if root == _NONE else root)

    def page(self, number: int) -> Page:
        """A page of a tree."""
        raw = os.pread(self._descriptor, self.size, number * self.size)
        found, _, flags, lower, upper = _PAGE.unpack_from(raw)
        kind = flags & ~_DIRTY
        if found != number or kind not in (_BRANCH, _LEAF) or not HEADER <= lower <= upper <= self.size:
            raise Unavailable(f"page {number} of the log is not what it should be; run engramfs verify")
        return Page(number, raw, lower, upper, kind == _LEAF)

    def run(self, size: int) -> int:
        """How many pages a value of `size` bytes has for itself."""
        return (HEADER - 1 + size) // self.size + 1

    def value(self, leaf: Leaf) -> bytes:
        if leaf.big is None:
            return leaf.value
        return os.pread(self._descriptor, leaf.size, leaf.big * self.size + HEADER)

    def walk(self, tree: Tree, after: bytes | None = None) -> Iterator[Page]:
        """The pages of a tree, a branch before what is below it; those that may have keys over `after`."""
        waiting = [] if tree.root is None else [tree.root]
        while waiting:
            page = self.page(waiting.pop())
            yield page
            if not page.is_leaf:
                children = list(page.children())
                keep = [
                    number
                    for index, (_, number) in enumerate(children)
                    if after is None or index + 1 == len(children) or children[index + 1][0] > after
                ]
                waiting.extend(reversed(keep))

    def trees(self, meta: Meta) -> Iterator[tuple[bytes, Tree]]:
        """The named databases."""
        for page in self.walk(meta.main):
            if page.is_leaf:
                for leaf in page.leaves():
                    if leaf.is_tree:
                        yield leaf.key, self._tree(leaf.value)

    def free(self, meta: Meta) -> "Iterator[tuple[int, array[int]]]":
        """(transaction, the pages that were freed by it and not used since)."""
        for page in self.walk(meta.free):
            if page.is_leaf:
                for leaf in page.leaves():
                    numbers = array("Q")
                    numbers.frombytes(self.value(leaf))
                    count = numbers[0]
                    yield int.from_bytes(leaf.key, "little"), numbers[1 : count + 1]
