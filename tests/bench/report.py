"""The table for people, and the same as JSON."""

import os
import platform
import time
from collections.abc import Sequence

import msgspec
from tests.bench.figures import Comparison, Figure, Target, ratio


class Report(msgspec.Struct, frozen=True):
    """One run."""

    date: str  # RFC 3339
    machine: str
    versions: dict[str, str]
    figures: tuple[Figure, ...]


def report(figures: Sequence[Figure], versions: dict[str, str], directory: str) -> Report:
    return Report(
        date=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        machine=f"{_processor()}, {os.cpu_count()} cores, {_memory() >> 30} GiB; "
        f"Linux {os.uname().release}; Python {platform.python_version()}; {_filesystem(directory)} disk; "
        f"load {os.getloadavg()[2]:.1f}",
        versions=versions,
        figures=tuple(figures),
    )


def as_json(of: Report) -> bytes:
    return msgspec.json.format(msgspec.json.encode(of)) + b"\n"


def as_text(of: Report) -> str:
    rows = [("figure", "ours", "peer", "ratio", "target", "reached")]
    for figure in of.figures:
        rows.extend(_rows(figure))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        f"{of.date}  {of.machine}",
        ", ".join(f"{name}: {version}" for name, version in of.versions.items()),
        "",
        *(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ),
        "",
        *(f"{figure.name}: {figure.note}" for figure in of.figures if figure.note),
    ]
    lines.insert(4, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def _rows(figure: Figure) -> list[tuple[str, str, str, str, str, str]]:
    """One line for each peer; what was said on the first is left out on the next."""
    ours = _value(figure.ours, figure.unit)
    lines = []
    if not figure.peers or figure.target is not None:
        lines.append((figure.name, ours, "", "", *_judged(figure.target, figure.ours, f" {figure.unit}")))
    for peer in figure.peers:
        first = (figure.name, ours) if not lines else ("", "")
        lines.append((*first, *_compared(figure, peer)))
    return lines


def _compared(figure: Figure, peer: Comparison) -> tuple[str, str, str, str]:
    found = ratio(figure, peer)
    judged = _judged(peer.target, found, " ×")
    return (f"{peer.name} {_value(peer.value, figure.unit)}", f"{found:.2f} ×", *judged)


def _judged(target: Target | None, value: float, unit: str) -> tuple[str, str]:
    if target is None:
        return "", ""
    said = f"{'at least' if target.at_least else 'at most'} {target.limit:g}{unit}"
    return said, "yes" if target.reached(value) else "no"


def _value(value: float, unit: str) -> str:
    return f"{value:.3g} {unit}" if value < 100 else f"{value:,.0f} {unit}"


def _processor() -> str:
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _filesystem(directory: str) -> str:
    """The type of the filesystem that holds `directory`."""
    found = ("", "an unknown")
    with open("/proc/self/mounts", encoding="utf-8") as file:
        for line in file:
            _, point, kind, *_ = line.split()
            if (directory + "/").startswith(point.rstrip("/") + "/") and len(point) >= len(found[0]):
                found = (point, kind)
    return found[1]
