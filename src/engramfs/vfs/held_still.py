"""For the moment that a commit from outside takes, the views of its store record nothing.

So the commit is planned against everything that was acknowledged, and nothing is acknowledged that does not
know of it. `LiveStore.record` raises `HeldStill`, with nothing done; the guard of the handlers asks again.
"""

import trio


class HeldStill(Exception):
    """Not now: ask again once `until` is set."""

    def __init__(self, until: trio.Event) -> None:
        super().__init__("a commit from outside is under way")
        self.until = until
