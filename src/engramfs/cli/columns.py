"""Columns of text, as wide as a terminal shows them: a Chinese character takes two cells, an accent none."""


def cells(text: str) -> int:
    """How many cells `text` takes, which has nothing in it that does not print."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def padded(text: str, width: int, *, right: bool = False) -> str:
    """`text` with blanks up to `width` cells after it, or before it with `right`."""
    blanks = " " * (width - cells(text))
    return blanks + text if right else text + blanks
