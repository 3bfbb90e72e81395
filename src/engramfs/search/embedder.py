"""What turns text into vectors: the protocol, and which one there is.

Vectors are float32 and of length 1, so that a product is a cosine. Questions and passages are embedded
apart, since models are trained so.
"""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol

import msgspec

from engramfs.errors import Unavailable

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray


class NoMeaning(Unavailable):
    """There is no embedder, or it does not answer."""


class Embedder(Protocol):
    """Safe to use from several threads. Raises `NoMeaning` when it cannot answer."""

    identity: str  # the model and how it is used: vectors of another identity are of no use
    least: float  # the cosine below which a passage does not answer a question

    def passages(self, texts: Sequence[str]) -> "NDArray[numpy.float32]":
        """One row for each text."""

    def question(self, text: str) -> "NDArray[numpy.float32]":
        """One vector."""


class EmbedderSettings(msgspec.Struct, frozen=True):
    """With an `endpoint` that one is asked; else the model of the extra `[semantic]`, if it is there."""

    semantic: bool = True
    endpoint: str = ""  # the base URL of an OpenAI-compatible API, such as http://127.0.0.1:8000/v1
    model: str = ""
    key: str = ""  # sent as a bearer token
    question_prefix: str = ""  # what the model wants before questions and passages, such as "query: "
    passage_prefix: str = ""


def choose_embedder(settings: EmbedderSettings) -> Embedder:
    """The embedder that the settings name. Raises `NoMeaning` where it is not, or not wholly, installed."""
    if settings.endpoint:
        _require_numpy()
        from engramfs.search.endpoint_embedder import EndpointEmbedder

        return EndpointEmbedder(settings)
    from engramfs.search.bundled_embedder import BundledEmbedder

    embedder = BundledEmbedder()
    _require_numpy()
    return embedder


def _require_numpy() -> None:
    if find_spec("numpy") is None:
        raise NoMeaning("meaning needs numpy, which is not installed; pip install numpy adds it")
    try:
        import numpy  # noqa: F401
    except Exception as error:  # what a damaged installation raises, nobody can list
        why = " ".join(str(error).split())[:200]
        raise NoMeaning(
            f"numpy does not work here ({why}); pip install --force-reinstall numpy mends it"
        ) from error
