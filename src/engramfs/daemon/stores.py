"""What is done to stores as a whole, for the control socket and for commands alike.

`create`, `change`, `archive` and `delete` are one transaction each and return the store's document, the
JSON object that `describe` makes.
"""

from typing import Any

import msgspec

from engramfs.errors import UsageError
from engramfs.history import catalog, hygiene
from engramfs.history.repository import Repository
from engramfs.model.store import Conflicts, Head, Limits, Retention, Secrets, Store
from engramfs.model.times import format_time
from engramfs.storage.protocol import Reader, Writer

Document = dict[str, Any]


def create(
    repository: Repository,
    defaults: Limits,
    *,
    name: str,
    now: int,
    description: str = "",
    max_file_size: int | None = None,
    quota: int | None = None,
    conflicts: Conflicts = "keep",
    keep_days: int | None = None,
    keep_versions: int | None = None,
    secrets: Secrets = "flag",
) -> Document:
    """A new store. Raises `InvalidName`, `AlreadyExists`, and `UsageError` for impossible limits.

    Raises `Unavailable` where secrets are to be refused and the extra that tells them is not installed.
    """
    _check_secrets(secrets)
    limits = _changed(defaults, max_file_size, quota)
    retention = _retention(Retention(), keep_days, keep_versions)

    def body(writer: Writer) -> Document:
        store = catalog.create(
            writer,
            name,
            now=now,
            description=description,
            limits=limits,
            conflicts=conflicts,
            secrets=secrets,
        )
        store = msgspec.structs.replace(store, retention=retention)
        catalog.put(writer, store)
        return _document(writer, store)

    return repository.transact(body)


def change(
    repository: Repository,
    *,
    name: str,
    description: str | None = None,
    max_file_size: int | None = None,
    quota: int | None = None,
    conflicts: Conflicts | None = None,
    keep_days: int | None = None,
    keep_versions: int | None = None,
    secrets: Secrets | None = None,
) -> Document:
    """Set what is not None. Raises `NotFound` and `UsageError`, and `Unavailable` as `create` does."""
    _check_secrets(secrets)

    def body(writer: Writer) -> Document:
        store = catalog.named(writer, name)
        store = msgspec.structs.replace(
            store,
            description=store.description if description is None else description,
            limits=catalog.check_limits(_changed(store.limits, max_file_size, quota)),
            conflicts=conflicts or store.conflicts,
            retention=_retention(store.retention, keep_days, keep_versions),
            secrets=secrets or store.secrets,
        )
        catalog.put(writer, store)
        return _document(writer, store)

    return repository.transact(body)


def archive(repository: Repository, *, name: str, archived: bool) -> Document:
    """Close a store to new versions, or open it again. Raises `NotFound`."""

    def body(writer: Writer) -> Document:
        store = msgspec.structs.replace(catalog.named(writer, name), archived=archived)
        catalog.put(writer, store)
        return _document(writer, store)

    return repository.transact(body)


def delete(repository: Repository, *, name: str) -> Document:
    """Remove a store with its history; returns what it was. Raises `NotFound`."""

    def body(writer: Writer) -> Document:
        store = catalog.named(writer, name)
        document = _document(writer, store)
        catalog.delete(writer, store)
        return document

    return repository.transact(body)


def _check_secrets(secrets: Secrets | None) -> None:
    if secrets not in (None, "flag", "refuse"):
        raise UsageError(f"secrets is {secrets!r}; it must be flag or refuse")
    if secrets == "refuse":
        hygiene.require()


def _changed(limits: Limits, max_file_size: int | None, quota: int | None) -> Limits:
    return Limits(
        limits.max_file_size if max_file_size is None else max_file_size,
        limits.quota if quota is None else quota,
    )


def _retention(known: Retention, keep_days: int | None, keep_versions: int | None) -> Retention:
    days = known.keep_days if keep_days is None else keep_days
    versions = known.keep_versions if keep_versions is None else keep_versions
    if not (0 <= days < 1 << 20 and 0 <= versions < 1 << 62):
        raise UsageError("keep_days and keep_versions are numbers from 0 on; 0 is no rule")
    return Retention(days, versions)


def describe(store: Store, head: Head) -> Document:
    """A store as JSON: sizes in bytes, `created` in RFC 3339, `version` the number of its head.

    From version `oldest` on everything is there. Of `keep_days` and `keep_versions`, 0 is no rule.
    """
    return {
        "name": store.name,
        "kind": store.kind,
        "description": store.description,
        "version": head.number,
        "oldest": head.oldest,
        "files": head.files,
        "used": head.used,
        "max_file_size": store.limits.max_file_size,
        "quota": store.limits.quota,
        "conflicts": store.conflicts,
        "keep_days": store.retention.keep_days,
        "keep_versions": store.retention.keep_versions,
        "secrets": store.secrets,
        "created": format_time(store.created),
        "archived": store.archived,
    }


def read(reader: Reader, name: str) -> Document:
    """The document of the store called `name`. Raises `InvalidName` and `NotFound`."""
    return _document(reader, catalog.named(reader, name))


def every(reader: Reader, prefix: str = "") -> list[Document]:
    """The documents of all stores whose name begins with `prefix`, by name."""
    return [_document(reader, store) for store in catalog.every(reader, prefix)]


def _document(reader: Reader, store: Store) -> Document:
    return describe(store, catalog.head(reader, store.id))
