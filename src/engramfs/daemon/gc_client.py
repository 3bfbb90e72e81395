"""The slices of a collection, carried out by a running daemon."""

from typing import Any

from engramfs.daemon.client import ControlClient
from engramfs.history.collection.carrier import Done
from engramfs.history.collection.slices import Prune, Recode


class ByDaemon:
    """`engramfs.history.collection.carrier.Carrier` over the control socket."""

    shared = True

    def __init__(self, client: ControlClient) -> None:
        self._client = client
        self._collection = ""

    def begin(self) -> None:
        self._collection = self._client.call("gc.begin")

    def _call(self, method: str, **params: Any) -> Any:
        return self._client.call(method, collection=self._collection, **params)

    def set_oldest(self, store: int, oldest: int) -> list[int]:
        pinned: list[int] = self._call("gc.oldest", store=store, oldest=oldest)
        return pinned

    def prune(self, slice_: Prune) -> Done:
        return Done(**self._call("gc.prune", slice=slice_))

    def recode(self, rows: list[Recode]) -> Done:
        return Done(**self._call("gc.recode", rows=rows))

    def sweep(self, digests: list[bytes]) -> Done:
        return Done(**self._call("gc.sweep", digests=digests))

    def end(self, now: int) -> None:
        self._call("gc.end", now=now)

    # After the collection

    def age(self) -> None:
        """See `engramfs.storage.lmdb_wiping.SETTLING`."""
        self._client.call("gc.age")

    def wiped(self, residue: bytes) -> None:
        """The file holds nothing any more of what was removed when the residue was this."""
        self._client.call("gc.wiped", residue=residue)
