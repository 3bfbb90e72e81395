"""Run the bench: in a mount and process namespace of its own, so that nothing of it is left behind.

Outside, this makes a temporary directory, starts itself again inside the namespaces, and removes the
directory. When the first process of a process namespace ends, by itself or for the time limit, the kernel
ends all the others and with them every mount.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile

from tests.bench import (
    collection,
    crashes,
    history,
    peers,
    report,
    scale,
    search_speed,
    secrets_cost,
    sessions,
    tools,
)
from tests.bench.figures import Figure

TIME_LIMIT = 630  # seconds for everything
_NAMESPACES = [
    "unshare",
    "--mount",
    "--propagation",
    "private",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
]


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", default=os.environ.get("ENGRAMFS_BENCH_JSON"), metavar="PATH")
    parser.add_argument("--directory", default=tempfile.gettempdir(), help="on the disk that is measured")
    groups = "peers, versions, stores, sessions, crashes, history, search, tools, collection or secrets"
    parser.add_argument("--only", default="", help=groups)
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        return _inside(options)
    return _outside(options.directory)


def _outside(above: str) -> int:
    directory = tempfile.mkdtemp(prefix="engramfs-bench-", dir=above)
    os.chmod(directory, 0o755)
    try:
        command = [*_NAMESPACES, sys.executable, "-m", "tests.bench", *sys.argv[1:], "--inside", directory]
        return subprocess.run(command, timeout=TIME_LIMIT, check=False).returncode
    except subprocess.TimeoutExpired:
        print(f"bench: stopped after {TIME_LIMIT} s", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(directory)


def _inside(options: argparse.Namespace) -> int:
    directory = os.path.realpath(options.inside)
    figures: list[Figure] = []
    versions: dict[str, str] = {}
    if options.only in ("", "peers"):
        with peers.started(directory) as started:
            versions = started.versions
            for figure in started.figures():
                _progress(figures, figure)
    if options.only in ("", "versions"):
        for figure in scale.versions(directory):
            _progress(figures, figure)
    if options.only in ("", "stores"):
        for figure in scale.stores_and_files(directory):
            _progress(figures, figure)
    if options.only in ("", "sessions"):
        for figure in sessions.sessions(directory):
            _progress(figures, figure)
    if options.only in ("", "crashes"):
        for figure in crashes.crashes(directory):
            _progress(figures, figure)
    if options.only in ("", "history"):
        for figure in history.history(directory):
            _progress(figures, figure)
    if options.only in ("", "search"):
        for figure in search_speed.figures(directory):
            _progress(figures, figure)
    if options.only in ("", "tools"):
        for figure in tools.tools(directory):
            _progress(figures, figure)
    if options.only in ("", "collection"):
        for figure in collection.collections(directory):
            _progress(figures, figure)
    if options.only in ("", "secrets"):
        for figure in secrets_cost.figures(directory):
            _progress(figures, figure)
    made = report.report(figures, versions, directory)
    print("\n" + report.as_text(made), flush=True)
    if options.json:
        with open(options.json, "wb") as file:
            file.write(report.as_json(made))
    return 0


def _progress(figures: list[Figure], figure: Figure) -> None:
    figures.append(figure)
    print(f"measured: {figure.name}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
