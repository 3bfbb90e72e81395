"""Names and messages as people see them. They come from agents, and may hold what steers a terminal."""


def visible(text: str) -> str:
    """`text` with whatever does not print, or would begin another line, written as an escape."""
    if text.isprintable():
        return text
    return "".join(_escaped(character) for character in text)


def _escaped(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is not UTF-8
        return f"\\x{code - 0xDC00:02x}"
    return character.encode("unicode_escape").decode("ascii")
