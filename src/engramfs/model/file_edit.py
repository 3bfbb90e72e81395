"""What one tool call does to files: a list of these, applied in order, becomes one version or nothing.

Paths are relative to the store. Text is what a client sends as text; bytes that are not UTF-8 are lone
surrogates in it (see `engramfs.model.names.printable`). `expected_sha256` is the digest that the file had
when its caller read it; where it has another now, nothing of the call is done.
"""

import msgspec


class _FileEdit(msgspec.Struct, frozen=True, tag_field="mode", tag=str.lower, forbid_unknown_fields=True):
    path: str


class Create(_FileEdit, frozen=True):
    """A new file; parents that are missing are made."""

    content: str


class Append(_FileEdit, frozen=True):
    """`content` after what the file holds."""

    content: str
    expected_sha256: str | None = None


class Edit(_FileEdit, frozen=True):
    """`old_text`, which must occur exactly once, becomes `new_text`."""

    old_text: str
    new_text: str
    expected_sha256: str | None = None


class Overwrite(_FileEdit, frozen=True):
    """The whole file; it is made if it is missing, unless a digest is expected."""

    content: str
    expected_sha256: str | None = None


class Delete(_FileEdit, frozen=True):
    """A file; with `recursive` also a directory and everything in it."""

    recursive: bool = False
    expected_sha256: str | None = None


class Rename(_FileEdit, frozen=True):
    """A file or directory gets a path that nothing has yet."""

    new_path: str
    expected_sha256: str | None = None


FileEdit = Create | Append | Edit | Overwrite | Delete | Rename


class EditLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one call may do; the limits of the store hold beside these."""

    max_file_size: int = 256 << 10  # bytes of a file after the change
    max_files: int = 20  # edits in one call


class EditedFile(msgspec.Struct, frozen=True):
    """A file after the call; `sha256` is None when it is gone, or for a directory."""

    path: str
    sha256: str | None
