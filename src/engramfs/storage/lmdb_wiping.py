"""Wiping removed rows out of LMDB's file, and giving the space of free pages back to the disk.

LMDB keeps the bytes of what was deleted: in pages that it may use again, in the gap of pages that are in use
(a row that left, or what was in the buffer before), and beyond the last page. All three are overwritten with
zeros here, or become holes where the disk can do that. Nobody reads those bytes.

Concurrency. This runs in a process of its own, beside the one that writes and those that read.

 1. Free pages are wiped while LMDB's write lock is held, so that no transaction takes them into use. Those
    that a reader may still see, and those that the last two transactions freed, are passed over; after a
    power cut the log may be as it was before the last. The lock is held for milliseconds at a time, nothing
    is written by way of it, and LMDB takes it back from a process that dies.
 2. Gaps are wiped while a read transaction is open, which keeps its pages from being used again. LMDB never
    writes to a page that is in use, and only the gap is written to here.

 3. So gaps come first, then `SETTLING` commits, then free pages: a page that went out of use before its gap
    was wiped is wiped with the free ones.

Before a free page is touched, all pages have to add up: those of every tree and the free ones are the file.
"""

import contextlib
import ctypes
import errno
import operator
import os
import time
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from itertools import chain, islice, pairwise

import lmdb
import msgspec

from engramfs.errors import Unavailable
from engramfs.storage.lmdb_failures import DATA, translated
from engramfs.storage.lmdb_pages import HEADER, METAS, Meta, Pages, Tree

SETTLING = 3  # commits after which a page that was freed before them may be wiped
_LOCK = 0.004  # seconds that the write lock is held, beside looking for what is free
_SNAPSHOT = 0.2  # seconds that a read transaction is open
_HOLE = 0x03  # FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE
_WORTH_A_HOLE = 32 << 10  # bytes
_ZEROS = bytes(1 << 20)

Extent = tuple[int, int]  # bytes in the file, from and to


class Size(msgspec.Struct, frozen=True):
    """Bytes: of pages in use, of free pages, and of blocks that the file has on the disk."""

    used: int
    free: int
    disk: int


class Wiping:
    """LMDB's file in `directory`, opened beside others. Not in a process that has it open another way."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self._fallocate = ctypes.CDLL(None, use_errno=True).fallocate
        self._fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
        with translated(directory):
            self._environment = lmdb.open(directory, map_size=0, create=False, max_dbs=0, lib_version=0)
        self._descriptor = os.open(os.path.join(directory, DATA), os.O_RDWR | os.O_CLOEXEC)
        self._pages = Pages(self._descriptor, int(self._environment.stat()["psize"]))

    def close(self) -> None:
        os.close(self._descriptor)
        self._environment.close()

    def __enter__(self) -> "Wiping":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @contextlib.contextmanager
    def _locked(self) -> Iterator[Meta]:
        """LMDB's write lock is held; nobody else has a write transaction, and this one writes nothing."""
        with translated(self.directory):
            transaction = self._environment.begin(write=True)
            try:
                meta = max(self._pages.metas(), key=lambda meta: meta.transaction)
                if transaction.id() != meta.transaction + 1:
                    raise Unavailable("the log does not begin where it says; run engramfs verify")
                yield meta
            finally:
                transaction.abort()

    @contextlib.contextmanager
    def _reading(self) -> Iterator[Meta]:
        """No page of this state is used again meanwhile."""
        with self._locked() as meta:
            transaction = self._environment.begin()
        try:
            if transaction.id() != meta.transaction:
                raise Unavailable(
                    "a reader of the log sees another state than it should; run engramfs verify"
                )
            yield meta
        finally:
            transaction.abort()

    def measure(self) -> Size:
        """How much is in use now."""
        with self._reading() as meta:
            free = sum(len(numbers) for _, numbers in self._pages.free(meta)) * self._pages.size
        used = (meta.last_page + 1) * self._pages.size - free
        return Size(used, free, os.fstat(self._descriptor).st_blocks * 512)

    # Free pages

    def wipe_free_pages(self) -> int:
        """How many bytes were wiped. Those that a reader holds are passed over: see `held`."""
        self._environment.reader_check()
        wiped, start = 0, 0
        while start >= 0:
            with self._locked() as meta:
                began = time.perf_counter()
                extents = list(self._free_extents(meta, start))
                until = time.perf_counter() + max(_LOCK, time.perf_counter() - began)
                for begin, end in extents:
                    wiped += self._wipe_data(begin, end)
                    start = end
                    if time.perf_counter() > until:
                        break
                else:
                    start = -1
            time.sleep(_LOCK if start >= 0 else 0)
        return wiped

    def _free_extents(self, meta: Meta, start: int) -> Iterator[Extent]:
        """What is free for good, from the byte `start` on, and what is beyond the last page."""
        free = list(self._pages.free(meta))
        self._check_sum(meta, free)
        limit, size = min(meta.transaction - 1, self._oldest_reader(meta)), self._pages.size
        numbers = sorted(chain.from_iterable(some for freed, some in free if freed < limit))
        for begin, end in _runs(numbers[bisect_left(numbers, start // size) :]):
            yield begin * size, end * size
        beyond = (max(each.last_page for each in self._pages.metas()) + 1) * size
        length = os.fstat(self._descriptor).st_size
        if max(beyond, start) < length:
            yield max(beyond, start), length

    def held(self) -> int:
        """Bytes of free pages that are passed over since somebody reads a state in which they are used."""
        with self._reading() as meta:
            oldest = self._oldest_reader(meta)
            passed = (len(numbers) for freed, numbers in self._pages.free(meta) if freed >= oldest)
            return sum(passed) * self._pages.size if oldest < meta.transaction - 1 else 0

    def _oldest_reader(self, meta: Meta) -> int:
        """The oldest transaction whose state somebody reads; without a reader, that of `meta`."""
        found = [meta.transaction]
        for line in self._environment.readers().splitlines()[1:]:
            words = line.split()
            if len(words) != 3:
                raise Unavailable(f"the table of readers has the line {line!r}; the log cannot be wiped")
            if words[2] != "-":
                found.append(int(words[2]))
        return min(found)

    def _check_sum(self, meta: Meta, free: "list[tuple[int, array[int]]]") -> None:
        """Raise `Unavailable` unless the pages of all trees and the free ones are all, each once."""
        numbers = list(chain.from_iterable(some for _, some in free))
        in_trees = meta.main.pages + meta.free.pages + sum(tree.pages for _, tree in self._pages.trees(meta))
        distinct = set(numbers)
        if (
            len(distinct) != len(numbers)
            or METAS + in_trees + len(numbers) != meta.last_page + 1
            or (numbers and not METAS <= min(numbers) <= max(numbers) <= meta.last_page)
            or not distinct.isdisjoint(page.number for page in self._pages.walk(meta.free))
        ):
            raise Unavailable(
                "the pages of the log do not add up, so its free ones are not touched; engramfs backup makes "
                "a copy without any"
            )

    def _wipe_data(self, begin: int, end: int) -> int:
        """Wipe what is no hole yet between two bytes."""
        wiped = 0
        while begin < end:
            try:
                data = os.lseek(self._descriptor, begin, os.SEEK_DATA)
            except OSError as error:
                if error.errno == errno.ENXIO:  # there is none up to the end of the file
                    break
                raise
            if data >= end:
                break
            hole = min(os.lseek(self._descriptor, data, os.SEEK_HOLE), end)
            self._wipe(data, hole)
            wiped += hole - data
            begin = hole
        return wiped

    def _wipe(self, begin: int, end: int) -> None:
        """A hole takes milliseconds to make, zeros for a few pages microseconds."""
        if end - begin < _WORTH_A_HOLE:
            if os.pread(self._descriptor, end - begin, begin).count(0) < end - begin:
                os.pwrite(self._descriptor, bytes(end - begin), begin)
            return
        if self._fallocate(self._descriptor, _HOLE, begin, end - begin) == 0:
            return
        number = ctypes.get_errno()
        if number not in (errno.EOPNOTSUPP, errno.ENOSYS):
            raise OSError(number, os.strerror(number), os.path.join(self.directory, DATA))
        for start in range(begin, end, len(_ZEROS)):
            os.pwrite(self._descriptor, _ZEROS[: end - start], start)

    # Gaps

    def wipe_gaps(self) -> int:
        """How many bytes in pages that are in use were wiped."""
        wiped = 0
        names: list[bytes | None] = [None]  # the free list and the main tree, which are small
        with self._reading() as meta:
            names += sorted(name for name, _ in self._pages.trees(meta))
        for name in names:
            after: bytes | None = b""
            while after is not None:
                with self._reading() as meta:
                    some, after = self._wipe_some_gaps(self._trees(meta, name), after)
                wiped += some
        os.fdatasync(self._descriptor)
        return wiped

    def _trees(self, meta: Meta, name: bytes | None) -> list[Tree]:
        if name is None:
            return [meta.free, meta.main]
        return [tree for known, tree in self._pages.trees(meta) if known == name]

    def _wipe_some_gaps(self, trees: list[Tree], after: bytes) -> tuple[int, bytes | None]:
        """How many bytes were wiped, and the key to go on after, None at the end."""
        wiped, until = 0, time.perf_counter() + _SNAPSHOT
        for tree in trees:
            for page in self._pages.walk(tree, after or None):
                wiped += self._wipe_gap(page.number * self._pages.size, page.raw, page.lower, page.upper)
                if page.is_leaf:
                    for first, size in page.big_values():
                        wiped += self._wipe_end(first, size)
                    if len(trees) == 1 and time.perf_counter() > until:
                        return wiped, page.last_key()
        return wiped, None

    def _wipe_gap(self, offset: int, raw: bytes, lower: int, upper: int) -> int:
        if raw.count(0, lower, upper) == upper - lower:
            return 0
        os.pwrite(self._descriptor, bytes(upper - lower), offset + lower)
        return upper - lower

    def _wipe_end(self, first: int, size: int) -> int:
        """What follows a value in the last of its own pages."""
        begin = first * self._pages.size + HEADER + size
        length = (first + self._pages.run(size)) * self._pages.size - begin
        rest = os.pread(self._descriptor, length, begin)
        if rest.count(0) == len(rest):
            return 0
        os.pwrite(self._descriptor, bytes(len(rest)), begin)
        return len(rest)


def _runs(numbers: list[int]) -> Iterator[Extent]:
    """Neighbours among ascending numbers, from the first to the one after the last."""
    steps = map(operator.sub, islice(numbers, 1, None), numbers)
    breaks = [index for index, step in enumerate(steps, 1) if step != 1]
    for begin, end in pairwise([0, *breaks, len(numbers)] if numbers else []):
        yield numbers[begin], numbers[end - 1] + 1
