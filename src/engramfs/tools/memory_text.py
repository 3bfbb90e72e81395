"""The texts of the memory tool. Models read them, so every character counts; see its documentation."""

from collections.abc import Sequence

MAX_LINES = 999_999
_NUMBER_WIDTH = len(str(MAX_LINES))
_AROUND = 2  # lines shown before and after a change
_UNITS = ("B", "K", "M", "G")


def directory(path: str, items: Sequence[tuple[int, str]]) -> str:
    """`items` are the size and the path of everything in it, as shown."""
    lines = [f"{size(0)}\t{path}", *(f"{size(length)}\t{shown}" for length, shown in items)]
    title = f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items:"
    return "\n".join([title, *lines])


def file(path: str, lines: Sequence[str], first: int) -> str:
    return "\n".join([f"Here's the content of {path} with line numbers:", *numbered(lines, first)])


def numbered(lines: Sequence[str], first: int) -> list[str]:
    return [f"{number:>{_NUMBER_WIDTH}}\t{line}" for number, line in enumerate(lines, first)]


def size(length: int) -> str:
    """`0B`, `1.5K`, `2M`."""
    power = min(max(length.bit_length() - 1, 0) // 10, len(_UNITS) - 1)
    scaled = length / 1024**power
    return f"{int(scaled)}{_UNITS[power]}" if scaled == int(scaled) else f"{scaled:.1f}{_UNITS[power]}"


def edited(lines: Sequence[str], changed: int) -> str:
    """`changed` is the index of the first line that changed."""
    start, stop = max(0, changed - _AROUND), min(len(lines), changed + _AROUND + 1)
    title = "The memory file has been edited. Here is the snippet showing the change (with line numbers):"
    return "\n".join([title, *numbered(lines[start:stop], start + 1)])


def missing(path: str) -> str:
    return f"The path {path} does not exist. Please provide a valid path."


def missing_error(path: str) -> str:
    return f"Error: The path {path} does not exist"


def root(command: str, path: str) -> str:
    return f"Cannot {command} the {path} directory itself"


def exists(path: str) -> str:
    return f"Error: File {path} already exists"


def destination_exists(path: str) -> str:
    return f"Error: The destination {path} already exists"


def not_found(old: str, path: str) -> str:
    return f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}."


def not_unique(old: str, lines: Sequence[int]) -> str:
    return (
        f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: "
        f"{', '.join(map(str, lines))}. Please ensure it is unique"
    )


def bad_line(line: int, count: int) -> str:
    return (
        f"Error: Invalid `insert_line` parameter: {line}. "
        f"It should be within the range of lines of the file: [0, {count}]"
    )


def too_many_lines(path: str) -> str:
    return f"File {path} exceeds maximum line limit of 999,999 lines."
