"""Messages that wait for the next version of a store.

Who writes says what the next version is about, by the attribute `user.engramfs.message` of the root: it
goes to the next version of that author. A person beside (`engramfs note`) says it of whatever comes next.

A message is a journal record like any other, so it survives the death of the worker; it makes no batch, and
waits, stated anew after each cut, until a batch that changed something is cut.
"""

from engramfs.errors import InvalidArgument
from engramfs.model.author import Author

MAX_MESSAGE = 4096  # bytes of UTF-8


def decode(value: bytes) -> str:
    """The message that `value` is; empty: none. Raises `InvalidArgument`."""
    try:
        text = value.decode().strip()
    except UnicodeDecodeError:
        raise InvalidArgument("a message is UTF-8 text") from None
    if len(value) > MAX_MESSAGE or "\0" in text:
        raise InvalidArgument(f"a message is at most {MAX_MESSAGE} bytes of text without NUL")
    return text


class WaitingMessages:
    """The messages for one store; false when there is none."""

    def __init__(self) -> None:
        self._by: dict[Author, str] = {}

    def __bool__(self) -> bool:
        return bool(self._by)

    def items(self) -> list[tuple[Author, str]]:
        return list(self._by.items())

    def put(self, author: Author, text: str) -> None:
        """Let `text` wait instead of what waited; empty: nothing."""
        self._by.pop(author, None)
        if text:
            self._by[author] = text

    def of(self, author: Author) -> str:
        """What this author's next version is about, or empty."""
        return self._by.get(author, "")

    def take(self, author: Author) -> str:
        """The message of a version of `author`: what waited for it, and what persons said of the next one."""
        taken = [one for one in self._by if one == author or one.kind == "person"]
        return "\n".join(self._by.pop(one) for one in taken)
