"""Methods that answer only once the mounts show what they did.

The kernel remembers names and contents, also that a name is not there. It is told what to forget at its own
pace, and a program that wrote by a tool looks at a mount as soon as it has the answer.
"""

from collections.abc import Awaitable, Callable, Mapping

from engramfs.daemon.control import Handler, Notify, Peer

Settled = Callable[[], Awaitable[None]]  # waits until the kernel has dropped what it was told to drop


def settling(methods: Mapping[str, Handler], settled: Settled) -> dict[str, Handler]:
    """The same methods, each of which waits for that when it is done. Nothing is held meanwhile."""
    return {name: _settling(method, settled) for name, method in methods.items()}


def _settling(method: Handler, settled: Settled) -> Handler:
    async def handler(params: dict[str, object], peer: Peer, notify: Notify) -> object:
        answer = await method(params, peer, notify)
        await settled()
        return answer

    return handler
