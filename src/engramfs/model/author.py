"""Who made a version."""

from typing import Literal

import msgspec


class Author(msgspec.Struct, frozen=True, array_like=True):
    """An agent in a session, a person at the command line, or engramfs itself."""

    kind: Literal["agent", "person", "system"]
    agent: str | None = None
    actor: str | None = None
    tenant: str | None = None
    session: str | None = None

    def label(self) -> str:
        """A short name for people: `digest for alice`, `root`, `engramfs`."""
        if self.kind == "system":
            return "engramfs"
        who = self.agent or self.actor or self.kind
        return f"{who} for {self.actor}" if self.agent and self.actor else who


SYSTEM = Author("system")
