"""Who made a version as the author of a commit, and the other way round.

An agent is `digest for alice <digest+alice@engramfs>` to git; a tenant's actors are at `<tenant>.engramfs`.
What it is to a store is in lines of the message:

    Engramfs-Author: agent
    Engramfs-Agent: digest
    Engramfs-Actor: alice
    Engramfs-Session: 9f3ab001

A repository may come from anybody, and whoever made it could write such lines as well as a name. So what an
import takes from them is a name too, and nothing that follows from one:

- an agent, actor, tenant and session are believed, as names in git are, if their ids could be such and the
  author's line says the same: a person who commits with a copy of an agent's message is that person;
- `system` is not: engramfs itself never wrote what came from elsewhere, and such a commit is a person's;
- how a version came is `import`, and flags are what this store finds: nothing that comes from a repository
  is approved, or came through a mount. What the lines say of that is kept as what the commit said.
"""

import re

from engramfs.errors import InvalidName
from engramfs.history.git.fast_export import GitCommit
from engramfs.history.git.signature import Signature
from engramfs.history.imported import OURS
from engramfs.model.author import Author
from engramfs.model.names import check_id
from engramfs.model.version import Version
from engramfs.model.visible import visible

Lines = list[tuple[str, str]]

_SECOND = 10**9
_NOT_IN_IDENTITY = re.compile(r"[<>\x00-\x1f\x7f]")
_IDS = ("agent", "actor", "tenant", "session")


def signature_of(version: Version) -> Signature:
    """Author and committer of the commit that a version becomes."""
    name, mail = _identity(version.author)
    return Signature(name, mail, max(version.time // _SECOND, 0))


def _identity(author: Author) -> tuple[bytes, bytes]:
    who = [part for part in (author.agent, author.actor) if part] or [author.label()]
    host = f"{author.tenant}.engramfs" if author.tenant else "engramfs"
    mail = f"{'+'.join(who)}@{host}".replace(" ", ".")
    name, mail = (_NOT_IN_IDENTITY.sub("?", text) for text in (author.label(), mail))
    return name.encode("utf-8", "replace"), mail.encode("utf-8", "replace")


def lines_about(author: Author) -> Lines:
    """What a message says of the author, by the name of a line without `Engramfs-`."""
    ids = [(name.capitalize(), getattr(author, name) or "") for name in _IDS]
    return [("Author", author.kind), *(ids if author.kind == "agent" else [])]


def author_of(commit: GitCommit, lines: Lines) -> Author:
    """Who made a commit; `lines` are those of a store, if it wrote the message."""
    return _agent(commit, dict(lines)) or Author("person", actor=visible(_name(commit.author)))


def _name(author: Signature) -> str:
    return (author.name or author.mail).decode("utf-8", "replace").strip() or "unknown"


def _agent(commit: GitCommit, said: dict[str, str]) -> Author | None:
    if said.get(f"{OURS}Author") != "agent":
        return None
    ids = {name: said.get(f"{OURS}{name.capitalize()}") for name in _IDS}
    try:
        for name, value in ids.items():
            if value is not None:
                check_id(value, name)
    except InvalidName:
        return None
    author = Author("agent", **ids)
    return author if _identity(author) == (commit.author.name, commit.author.mail) else None
