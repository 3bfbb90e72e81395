r"""How the lines of a text end: `\n`, `\r\n` or `\r`, and a text may have several kinds.

Who edits a text is shown it with `\n` alone. What an edit leaves alone keeps the endings that it had.
"""

import re

_ENDING = re.compile("\r\n|\r|\n")


def with_newlines(text: str) -> str:
    r"""`text` with every line ended by `\n`."""
    return _ENDING.sub("\n", text)


def replace_text(text: str, old: str, new: str) -> str:
    r"""`text` with every `old` replaced by `new`, whatever their lines end with.

    The lines of `new` end as the one does in which it begins. `old` may not be empty.
    """
    shown, old, new = (with_newlines(each) for each in (text, old, new))
    endings: list[str] = _ENDING.findall(text)
    parts: list[str] = []
    passed = 0  # endings
    for index, kept in enumerate(shown.split(old)):
        if index:
            parts.append(new.replace("\n", _ending_at(endings, passed)))
            passed += old.count("\n")
        first, *others = kept.split("\n")
        parts.append(first)
        for ending, line in zip(endings[passed : passed + len(others)], others, strict=True):
            parts += (ending, line)
        passed += len(others)
    return "".join(parts)


def _ending_at(endings: list[str], line: int) -> str:
    """How a line ends; the last may have no end, and then it is that of the one before."""
    if not endings:
        return "\n"
    return endings[min(line, len(endings) - 1)]
