"""Whoever has the answer of a call that writes, and looks at a mount, sees what it did."""

from engramfs.daemon.control import Notify, Peer
from engramfs.daemon.settling import settling


async def test_the_answer_comes_after_the_kernel_has_dropped_what_changed() -> None:
    order: list[str] = []

    async def write(_params: dict[str, object], _peer: Peer, _notify: Notify) -> object:
        order.append("written")
        return "answer"

    async def settled() -> None:
        order.append("settled")

    async def nobody_is_told(_params: dict[str, object]) -> None:
        raise AssertionError

    method = settling({"write": write}, settled)["write"]
    assert await method({}, Peer(1, 0, 0), nobody_is_told) == "answer"
    assert order == ["written", "settled"]
