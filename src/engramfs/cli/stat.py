"""`engramfs stat FILE…`: which store and version a mounted file is, from its marks."""

import errno
import os

import click

from engramfs.cli.command import Command
from engramfs.cli.invocation import Invocation, pass_invocation
from engramfs.errors import EngramError, NotFound, Unavailable

PREFIX = "user.engramfs."
MARKS = ("store", "version", "sha256", "access", "author", "session")


@click.command("stat", cls=Command, short_help="What the marks of mounted files say.")
@click.argument("files", nargs=-1, required=True, type=click.Path(readable=False), metavar="FILE...")
@pass_invocation
def command(invocation: Invocation, files: tuple[str, ...]) -> None:
    """Say of mounted files which store and version they are, their digest, author and access."""
    documents = [{"path": path, **_marks(path)} for path in files]
    if invocation.json:
        invocation.output.document(documents)
        return
    for document in documents:
        invocation.output.line((document.pop("path") or "", "cyan"))
        for mark, value in document.items():
            if value is not None:
                invocation.output.line(f"  {mark:<8}", value)


def _marks(path: str) -> dict[str, str | None]:
    """The marks of one file. Raises `NotFound`, also for a file that is in no mount of engramfs."""
    try:
        found = {mark: _read(path, mark) for mark in MARKS}
    except OSError as error:
        raise _why_not(path, error) from error
    if found["store"] is None:
        raise NotFound(f"{path} is not in a mount of engramfs; engramfs status shows what is mounted")
    return found


def _read(path: str, mark: str) -> str | None:
    """One mark, or None where there is none (a directory has no digest, a plain file no mark at all)."""
    import xattr

    try:
        value = xattr.getxattr(os.fsencode(path), PREFIX + mark, symlink=True)
    except OSError as error:
        if error.errno in (errno.ENODATA, errno.EOPNOTSUPP, errno.EPERM):
            return None
        raise
    return bytes(value).decode("utf-8", "surrogateescape")


def _why_not(path: str, error: OSError) -> EngramError:
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return NotFound(f"{path} does not exist")
    if error.errno == errno.ENOTCONN:
        return Unavailable(f"{path} is in a mount whose daemon is gone; engramfs up replaces it")
    return Unavailable(f"{path} cannot be read: {error.strerror}")
