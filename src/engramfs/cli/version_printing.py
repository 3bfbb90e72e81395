"""Versions one after the other, the way `log` and `show` print them: lines, summaries, patches, JSON."""

import json
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import click
import msgspec

from engramfs.cli.invocation import Invocation
from engramfs.cli.patches import documents, print_patch, print_stat
from engramfs.cli.versions import print_line, print_redactions, print_secrets, print_version
from engramfs.errors import NotFound
from engramfs.history import hygiene, log
from engramfs.history.between import of_version
from engramfs.history.patch import content_of
from engramfs.history.redaction_rows import redactions
from engramfs.history.tree import version_tree

if TYPE_CHECKING:
    from engramfs.history.diff import Difference
    from engramfs.history.selection import Selected
    from engramfs.model.store import Head, Store
    from engramfs.storage.protocol import Reader


class VersionPrinter:
    """Prints versions of one store; `head` says how wide a number may be, and which are kept in part."""

    def __init__(
        self,
        invocation: Invocation,
        store: "Store",
        head: "Head",
        *,
        stat: bool = False,
        patch: bool = False,
        binary: bool = False,
        secrets: bool = False,
    ) -> None:
        """With `secrets`, a flagged version is printed with where they are, never with what they are."""
        self._secrets = secrets
        self._output = invocation.output
        self._store = store
        self._oldest = head.oldest
        self._width = len(str(head.number))
        self._stat = stat
        self._patch = patch or binary
        self._binary = binary
        self.as_json = invocation.json

    def print_line(self, reader: "Reader", one: "Selected") -> None:
        """A version as one line, with what was asked for below it."""
        changes = log.changes(reader, self._store.id, one.version.number)
        touching = (change for change in changes if log.touches(change, one.path))
        print_line(self._output, one.version, touching, self._width, partial=self._is_partial(one))
        print_secrets(self._output, self._found_secrets(reader, one))
        self.print_differences(reader, one)

    def print_version(self, reader: "Reader", one: "Selected") -> None:
        """A version with everything that is known of it."""
        number = one.version.number
        changes = log.changes(reader, self._store.id, number)
        tree = None if self._is_partial(one) else version_tree(reader, self._store, number)
        print_version(self._output, self._store.name, one.version, changes, oldest=self._oldest, tree=tree)
        print_redactions(self._output, redactions(reader, self._store.id, number))
        print_secrets(self._output, self._found_secrets(reader, one))
        self.print_differences(reader, one)

    def _is_partial(self, one: "Selected") -> bool:
        return one.version.number < self._oldest

    def _found_secrets(self, reader: "Reader", one: "Selected") -> "list[hygiene.FoundAt]":
        if not self._secrets or hygiene.FLAG not in one.version.flags:
            return []
        return hygiene.of_version(reader, self._store, one.version.number)

    def print_differences(self, reader: "Reader", one: "Selected") -> None:
        """The summary, or the patch, when it was asked for."""
        if not (self._stat or self._patch):
            return
        try:
            found = self._differences(reader, one)
        except NotFound as error:
            self._output.line((error.message, "yellow"))
            return
        self._output.line("")
        if self._stat:
            print_stat(self._output, found, partial(_contents, reader))
        if self._patch:
            print_patch(self._output, found, partial(_contents, reader), binary=self._binary)
        self._output.line("")

    def _differences(self, reader: "Reader", one: "Selected") -> "list[Difference]":
        found = of_version(reader, self._store, one.version.number)
        return [difference for difference in found if _is_at(difference, one.path)]

    def describe(self, reader: "Reader", one: "Selected") -> dict[str, Any]:
        """A version as JSON: with `differences`, if the summary or the patch was asked for."""
        changes = log.changes(reader, self._store.id, one.version.number)
        described = log.describe(one.version, changes, partial=self._is_partial(one))
        if self._secrets and hygiene.FLAG in one.version.flags:
            described["secrets"] = [msgspec.structs.asdict(each) for each in self._found_secrets(reader, one)]
        if self._stat or self._patch:
            try:
                found = self._differences(reader, one)
            except NotFound:
                return described | {"differences": None}
            contents = partial(_contents, reader)
            described["differences"] = documents(
                found, contents, stat=self._stat, patch=self._patch, binary=self._binary
            )
        return described

    def print_documents(self, reader: "Reader", found: "Iterable[Selected]") -> None:
        """All of them as one JSON list."""
        self._output.document([self.describe(reader, one) for one in found])

    def print_document(self, reader: "Reader", one: "Selected") -> None:
        """One of many whose end is not known: as JSON on a line of its own."""
        click.echo(json.dumps(self.describe(reader, one)))


def _contents(reader: "Reader", difference: "Difference") -> tuple[bytes | None, bytes | None]:
    return content_of(reader, difference.old), content_of(reader, difference.new)


def _is_at(difference: "Difference", path: bytes) -> bool:
    """Whether it is one of `path`, of something below it, or of a moved directory that it lies in."""
    for one in (difference.path, difference.from_path):
        if one is not None and (not path or one == path or one.startswith(path + b"/")):
            return True
    sources = (difference.path, difference.from_path) if difference.from_path is not None else ()
    return any(path.startswith(one + b"/") for one in sources if one is not None)
