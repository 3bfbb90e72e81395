"""What commands print: tables, colour and progress on a terminal, plain text elsewhere, JSON on request.

Names and messages come from agents; what does not print in them never reaches a terminal.
"""

import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence

import click

from engramfs.cli.columns import cells, padded
from engramfs.model.names import raw
from engramfs.model.visible import visible

Cell = str | tuple[str, str]  # text, or text and its colour (or "bold")
Steps = Callable[[str, int, int], None]  # what is done now; done, total (0: not known)
Progress = Callable[[int, int, int, int], None]  # done, total, done bytes, total bytes
PAGED = "engramfs.cli.paged"  # of a click context: what is printed goes to a pager


def is_shown() -> bool:
    """Whether the standard output is a terminal, or a pager on one."""
    return sys.stdout.isatty() or bool(click.get_current_context().meta.get(PAGED))


class Output:
    """The two ways to answer: `document` for programs, everything else for people."""

    def __init__(self, *, json: bool) -> None:
        self.json = json

    def document(self, value: object) -> None:
        """Print `value` as JSON."""
        click.echo(json.dumps(value, indent=2 if sys.stdout.isatty() else None))

    def line(self, *cells: Cell, separator: str = "  ") -> None:
        """Print those cells that are not empty beside each other; colours appear on a terminal only."""
        click.echo(separator.join(_styled(cell) for cell in cells if _text(cell)))

    def content(self, line: str, colour: str = "") -> None:
        """Print a line of a file. A terminal gets it in colour and with escapes, a program as it is."""
        if is_shown():
            shown = "\t".join(visible(part) for part in line.split("\t"))
            click.echo(_painted(shown, colour) if colour else shown)
        else:
            sys.stdout.flush()
            sys.stdout.buffer.write(raw(line) + b"\n")

    def raw(self, content: bytes) -> None:
        """Print bytes as they are."""
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()

    def table(self, headers: Sequence[str], rows: Sequence[Sequence[Cell]], *, right: str = "") -> None:
        """Print a table; `right` names the headers, separated by blanks, whose columns align right."""
        aligned = [header in right.split() for header in headers]
        if sys.stdout.isatty():
            _print_rich_table(headers, rows, aligned)
        else:
            _print_plain_table(headers, rows, aligned)

    def note(self, text: str) -> None:
        """Say something beside the result, on stderr."""
        shown = json.dumps({"note": text}) if self.json else click.style(visible(text), dim=True)
        click.echo(shown, err=True)

    @contextlib.contextmanager
    def progress(self, label: str) -> Iterator[Progress]:
        """A call that moves a progress bar on a terminal, and does nothing elsewhere."""
        if not sys.stderr.isatty() or self.json:
            yield lambda _done, _total, _done_bytes, _total_bytes: None
            return
        with _rich_progress(label) as move:
            yield move

    @contextlib.contextmanager
    def steps(self) -> Iterator[Steps]:
        """A call that shows on a terminal how far each of several steps is, and does nothing elsewhere."""
        if not sys.stderr.isatty() or self.json:
            yield lambda _what, _done, _total: None
            return
        with _rich_steps() as show:
            yield show

    @contextlib.contextmanager
    def activity(self, label: str) -> Iterator[Callable[[str], None]]:
        """A call that says on a terminal what is going on, for work whose end is not known."""
        if not sys.stderr.isatty() or self.json:
            yield lambda _text: None
            return
        from rich.console import Console
        from rich.text import Text

        with Console(stderr=True).status(label) as status:
            yield lambda text: status.update(Text(f"{label} {visible(text)}"))


def _text(cell: Cell) -> str:
    return visible(cell if isinstance(cell, str) else cell[0])


def _styled(cell: Cell) -> str:
    if isinstance(cell, str):
        return visible(cell)
    return _painted(visible(cell[0]), cell[1])


def _painted(text: str, style: str) -> str:
    return click.style(text, bold=True) if style == "bold" else click.style(text, fg=style)


def _print_plain_table(headers: Sequence[str], rows: Sequence[Sequence[Cell]], aligned: list[bool]) -> None:
    lines = [list(headers), *([_text(cell) for cell in row] for row in rows)]
    widths = [max(cells(line[column]) for line in lines) for column in range(len(headers))]
    for line in lines:
        texts = [
            padded(text, width, right=right) for text, width, right in zip(line, widths, aligned, strict=True)
        ]
        click.echo("  ".join(texts).rstrip())


def _print_rich_table(headers: Sequence[str], rows: Sequence[Sequence[Cell]], aligned: list[bool]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False, show_edge=False)
    for header, right in zip(headers, aligned, strict=True):
        table.add_column(header, justify="right" if right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(_text(cell), "" if isinstance(cell, str) else cell[1]) for cell in row))
    Console(highlight=False).print(table)


@contextlib.contextmanager
def _rich_progress(label: str) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn
    from rich.progress import Progress as Bars
    from rich.progress import TimeRemainingColumn as Remaining

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(binary_units=True))
    files = TextColumn("{task.fields[files]} files")
    with Bars(*columns, files, Remaining(), console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(label, total=None, files="0")

        def move(done: int, total: int, done_bytes: int, total_bytes: int) -> None:
            bars.update(task, completed=done_bytes, total=total_bytes or None, files=f"{done}/{total}")

        yield move


@contextlib.contextmanager
def _rich_steps() -> Iterator[Steps]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bars
    from rich.progress import TimeRemainingColumn as Remaining
    from rich.text import Text

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Remaining())
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("", total=None)

        def show(what: str, done: int, total: int) -> None:
            bars.update(task, description=Text(visible(what)).plain, completed=done, total=total or None)

        yield show
