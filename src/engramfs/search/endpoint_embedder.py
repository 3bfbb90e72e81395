"""An OpenAI-compatible endpoint for embeddings: `POST <endpoint>/embeddings`."""

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from engramfs.search.embedder import EmbedderSettings, NoMeaning

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

_TIMEOUT, _FOR_EACH = 5.0, 0.2  # seconds of silence: for a call, and for each text in it


class EndpointEmbedder:
    """What the endpoint does not answer raises `NoMeaning`, naming it; the key is in no message."""

    least = 0.0  # nothing is known of the model

    def __init__(self, settings: EmbedderSettings) -> None:
        self.identity = msgspec.json.encode(msgspec.structs.replace(settings, key="")).decode()
        self._settings = settings
        self._url = settings.endpoint.rstrip("/") + "/embeddings"
        self._headers = {"Content-Type": "application/json"}
        if settings.key:
            self._headers["Authorization"] = f"Bearer {settings.key}"

    def passages(self, texts: Sequence[str]) -> "NDArray[numpy.float32]":
        return self._embed([self._settings.passage_prefix + text for text in texts])

    def question(self, text: str) -> "NDArray[numpy.float32]":
        vector: NDArray[numpy.float32] = self._embed([self._settings.question_prefix + text])[0]
        return vector

    def _embed(self, texts: list[str]) -> "NDArray[numpy.float32]":
        import numpy

        body = {"model": self._settings.model, "input": texts, "encoding_format": "float"}
        answer = self._post(body, _TIMEOUT + _FOR_EACH * len(texts))
        try:
            rows = sorted(answer["data"], key=lambda row: row["index"])
            vectors = numpy.asarray([row["embedding"] for row in rows], dtype=numpy.float32)
            if vectors.ndim != 2 or len(vectors) != len(texts):
                raise ValueError(f"{len(rows)} vectors for {len(texts)} texts")
            if not numpy.isfinite(vectors).all():
                raise ValueError("numbers that are none")
        except (KeyError, TypeError, ValueError) as error:
            raise NoMeaning(f"{self._url} answered something else than embeddings ({error})") from error
        lengths = numpy.linalg.norm(vectors, axis=1, keepdims=True)
        scaled: NDArray[numpy.float32] = vectors / numpy.maximum(lengths, 1e-9)
        return scaled

    def _post(self, body: Mapping[str, object], timeout: float) -> Any:
        try:
            request = urllib.request.Request(self._url, json.dumps(body).encode(), self._headers)
            with urllib.request.urlopen(request, timeout=timeout) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            with error:
                detail = error.read(200).decode(errors="replace")
            raise NoMeaning(
                f"{self._url} answered {error.code}: {detail}; see [search] in the configuration"
            ) from error
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise NoMeaning(
                f"{self._url} does not answer ({error}); see [search] in the configuration"
            ) from error
