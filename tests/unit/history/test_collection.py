"""What no version and no rule needs goes; what is needed stays as it was, and takes less space."""

import hashlib
import os
import random
import time
from itertools import pairwise
from pathlib import Path

from engramfs.history import catalog
from engramfs.history.collection import Collected, collect
from engramfs.history.collection.carrier import Alone
from engramfs.history.collection.layout import _leading, level
from engramfs.history.collection.marking import deltas
from engramfs.history.redaction import redact
from engramfs.history.repository import Repository
from engramfs.history.verify import verify
from engramfs.model.author import SYSTEM
from engramfs.storage import blobs, keys
from engramfs.storage.lmdb_wiping import Wiping
from engramfs.storage.protocol import Table

from .conftest import Book, Shelf


def gc(repository: Repository, now: int = 0) -> Collected:
    collected = Collected()
    collect(repository, Alone(repository), now, lambda *_: None, collected)
    report = verify(repository)
    assert report.sound, report.findings
    return collected


def contents(repository: Repository) -> set[bytes]:
    """The digests of all blobs."""
    with repository.engine.reading() as reader:
        return {key[:-4] for key in reader.keys(Table.BLOBS, b"", b"\xff" * 40)}


def digest_of(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


def trees(book: Book, numbers: range) -> dict[int, dict[bytes, tuple[bytes, bytes]]]:
    """Of each version, path → (digest, content)."""
    found = {}
    for number in numbers:
        tree = book.tree(number)
        with book.repository.engine.reading() as reader:
            found[number] = {
                path: (entry.digest, blobs.read(reader, entry.digest, entry.size) if entry.digest else b"")
                for path, entry in tree.items()
            }
    return found


def depth(known: dict[bytes, bytes], digest: bytes) -> int:
    base = known.get(keys.blob(digest, 0), b"")
    return 1 + depth(known, base) if blobs.is_base(base) else 0


def append(book: Book, count: int, size: int = 100 << 10, line: int = 80) -> list[bytes]:
    """A file that grows by random lines, which do not compress."""
    chance = random.Random(1)
    content = chance.randbytes(size)
    written = []
    for _ in range(count):
        content += chance.randbytes(line)
        written.append(content)
        book.write(log=content)
    return written


# What goes


def test_the_contents_of_a_deleted_store_go_but_those_that_another_has(book: Book, shelf: Shelf) -> None:
    other = shelf("contexts/other")
    other.write(a=b"shared", b=b"alone")
    book.write(z=b"shared")
    book.repository.transact(lambda writer: catalog.delete(writer, other.store))
    assert gc(book.repository).contents == 1
    assert contents(book.repository) == {digest_of(b"shared")}


def test_what_was_redacted_goes_and_what_is_only_superseded_stays(book: Book) -> None:
    book.write(a=b"secret", b=b"old")
    book.write(a=b"clean", b=b"new")
    redact(book.repository, book.store.name, 1, b"a", SYSTEM, "", 1)
    assert gc(book.repository).contents == 1
    assert contents(book.repository) == {digest_of(each) for each in (b"clean", b"old", b"new")}


def test_a_content_that_was_never_finished_goes(book: Book) -> None:
    digest = digest_of(b"what it would have been")
    book.repository.transact(lambda writer: blobs.put_part(writer, digest, 1, b"its second part"))
    assert gc(book.repository).contents == 1
    assert contents(book.repository) == set()


def test_a_second_collection_finds_nothing_to_do(book: Book) -> None:
    append(book, 10)
    assert gc(book.repository).deltas > 0
    again = gc(book.repository)
    assert (again.versions, again.contents, again.deltas) == (0, 0, 0)


# Deltas


def test_a_thousand_appends_take_little_and_each_is_read_at_once(book: Book, state: Path) -> None:
    written = append(book, 1000)
    assert gc(book.repository).deltas == 999
    known = deltas(book.repository.engine)
    assert max(depth(known, digest_of(content)) for content in written) <= blobs.DELTAS
    assert blobs.DELTAS == 32
    slowest = 0.0
    for content in written[::7]:
        began = time.perf_counter()
        with book.repository.engine.reading() as reader:
            assert blobs.read(reader, digest_of(content), len(content)) == content
        slowest = max(slowest, time.perf_counter() - began)
    assert slowest < 0.05  # 0.005 on an idle machine: see the bench
    book.repository.close()
    with Wiping(str(state / "log")) as wiping:
        assert wiping.measure().used <= 2 << 20


def test_deltas_are_laid_out_anew_for_a_few_contents_alone_when_another_comes(book: Book) -> None:
    append(book, 200, size=4000)
    gc(book.repository)
    book.write(log=os.urandom(4000))
    assert gc(book.repository).deltas < 20


def test_what_is_live_is_no_delta_and_becomes_whole_when_it_comes_back(book: Book) -> None:
    old, new = os.urandom(5000), os.urandom(80)
    book.write(a=old)
    book.write(a=old + new)
    gc(book.repository)
    known = deltas(book.repository.engine)
    assert known == {keys.blob(digest_of(old), 0): digest_of(old + new)}
    entry = book.tree(1)[b"a"]
    book.write_paths({b"b": old})  # the bytes come again
    with book.repository.engine.reading() as reader:
        assert blobs.is_whole(reader, entry.digest)
    gc(book.repository)
    assert deltas(book.repository.engine) == {}
    book.remove("b")
    gc(book.repository)
    book.rename("a", "c")
    assert trees(book, range(5, 6))[5][b"c"][1] == old + new


def test_the_base_of_a_delta_goes_without_what_leads_to_it(book: Book) -> None:
    base = random.Random(1).randbytes(5000)  # digests say which content is a base: always the same
    for count in range(6):
        book.write(a=base + bytes([count]) * 90)
    gc(book.repository)
    before = trees(book, range(1, 7))
    bases = {book.tree(number)[b"a"].digest: number for number in range(1, 6)}
    used = set(deltas(book.repository.engine).values())
    for digest in used & set(bases):
        redact(book.repository, book.store.name, bases[digest], b"a", SYSTEM, "", 1)
        gc(book.repository)
        assert digest not in contents(book.repository)
    gone = {bases[digest] for digest in used & set(bases)}
    assert gone
    kept = trees(book, range(1, 7))
    assert all(kept[number] == before[number] for number in before if number not in gone)


def test_what_does_not_resemble_its_successor_stays_whole_and_is_not_tried_again(book: Book) -> None:
    for _ in range(3):
        book.write(a=os.urandom(5000))
    assert gc(book.repository).deltas == 0
    assert {len(base) for base in deltas(book.repository.engine).values()} == {33}
    before = time.perf_counter()
    assert gc(book.repository).deltas == 0
    assert time.perf_counter() - before < 1


def test_large_contents_are_deltas_by_part(book: Book) -> None:
    content = os.urandom(2_500_000)
    book.write(a=content)
    changed = content[:1_500_000] + b"changed" + content[1_500_007:]
    book.write(a=changed)
    book.write(a=changed + os.urandom(100))
    before = trees(book, range(1, 4))
    assert gc(book.repository).deltas == 6
    assert trees(book, range(1, 4)) == before


def test_chains_have_no_circle_however_contents_come_and_go(book: Book) -> None:
    chance = random.Random(3)
    common = os.urandom(600)
    pool = [common + os.urandom(40) for _ in range(12)]
    for round_ in range(60):
        book.write_paths({name: chance.choice(pool) for name in chance.sample([b"a", b"b", b"c", b"d"], 2)})
        if round_ % 5 == 4:
            gc(book.repository)
    before = trees(book, range(1, 61))
    gc(book.repository)
    assert trees(book, range(1, 61)) == before


def test_levels_bound_the_length_of_a_chain() -> None:
    sequence = [digest_of(b"%d" % number) for number in range(5000)]
    base = dict(_leading(sequence))
    assert set(base) == set(sequence[:-1])
    assert all(level(base[each]) > level(each) or base[each] == sequence[-1] for each in base)
    assert sum(base[one] == other for one, other in pairwise(sequence)) > 1500
    assert level(b"\0" * 32) == blobs.DELTAS - 2
