"""Keys sort as the schema says, and come apart as they were put together."""

from hypothesis import given, settings
from hypothesis import strategies as st

from engramfs.model.entry import NODE_BITS
from engramfs.storage import keys

U32 = st.integers(0, 2**32 - 1)
U64 = st.integers(0, 2**64 - 1)
NODES = st.integers(0, 2**NODE_BITS - 1)
NAMES = st.binary(min_size=1, max_size=255).filter(lambda name: b"\0" not in name and b"/" not in name)


@settings(deadline=None)
@given(st.binary(max_size=40), st.binary(max_size=40))
def test_after_is_above_everything_with_the_prefix_and_below_the_rest(prefix: bytes, other: bytes) -> None:
    after = keys.after(prefix)
    assert prefix + other < after
    if other.startswith(prefix) or other < prefix:
        assert other < after
    elif after != b"\xff" * 511:
        assert other >= after or not other.startswith(prefix)
        assert (prefix < other < after) == other.startswith(prefix)


def test_after_edge_cases() -> None:
    assert keys.after(b"a") == b"b"
    assert keys.after(b"a\xff\xff") == b"b"
    assert keys.after(b"\x00") == b"\x01"
    assert keys.after(b"\xff\xff") == keys.after(b"") == b"\xff" * 511


@settings(deadline=None)
@given(U32, NODES, NAMES, U64)
def test_keys_come_apart(store: int, parent: int, name: bytes, number: int) -> None:
    assert keys.split_history(keys.history(store, parent, name, number)) == (parent, name, number)
    assert keys.split_live(keys.live(store, parent, name)) == (parent, name)
    assert keys.split_place(keys.place(store, 7, parent, name)) == (7, parent, name)
    assert keys.history(store, parent, name, number).startswith(keys.directory(store, parent))


@settings(deadline=None)
@given(st.lists(st.tuples(U32, NODES, NAMES, U64), min_size=2, max_size=20))
def test_rows_of_history_stand_by_name_and_then_by_number(rows: list[tuple[int, int, bytes, int]]) -> None:
    in_order = sorted(rows, key=lambda row: keys.history(*row))
    assert in_order == sorted(rows)


@settings(deadline=None)
@given(st.lists(st.tuples(U32, U64), min_size=2, max_size=20))
def test_versions_stand_by_store_and_then_by_number(rows: list[tuple[int, int]]) -> None:
    assert sorted(rows, key=lambda row: keys.version(*row)) == sorted(rows)


def test_the_longest_key_fits() -> None:
    longest = keys.history(2**32 - 1, 2**NODE_BITS - 1, b"x" * 255, 2**64 - 1)
    assert len(longest) == 273 <= 511
    assert len(keys.place(1, 1, 1, b"x" * 255)) <= 511


@settings(deadline=None)
@given(U32, U64)
def test_integers_come_back(small: int, large: int) -> None:
    assert keys.read_u32(keys.u32(small)) == small
    assert keys.read_u64(keys.u64(large)) == large
