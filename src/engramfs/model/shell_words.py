"""Commands that messages give: a person takes them to a shell as they are printed."""

import shlex

from engramfs.model.names import printable

_SHORT = {ord("\n"): r"\n", ord("\t"): r"\t", ord("\r"): r"\r", ord("'"): r"\'", ord("\\"): r"\\"}


def shell_word(text: str) -> str:
    r"""`text` as one word of a shell, of characters that print alone: `a`, `'a b'`, `$'a\nb'`.

    What does not print, or is a byte that is not UTF-8, is written as a shell reads it back in `$'…'`.
    """
    if text.isprintable():
        return shlex.quote(text)
    return "$'" + "".join(map(_escaped, text)) + "'"


def path_word(path: bytes) -> str:
    """A path in a store as a word of a command."""
    return shell_word(path_argument(printable(path)))


def path_argument(path: str) -> str:
    """A path in a store as an argument of engramfs: one that begins with `-` is no option then."""
    return "/" + path if path.startswith("-") else path


def shell_command(*words: str) -> str:
    """The words as a command."""
    return " ".join(map(shell_word, words))


def _escaped(character: str) -> str:
    if ord(character) in _SHORT:
        return _SHORT[ord(character)]
    if character.isprintable():
        return character
    # Octal: after \x, shells differ in how many digits they take.
    return "".join(f"\\{byte:03o}" for byte in character.encode("utf-8", "surrogateescape"))
