"""An OpenAI-compatible endpoint in the place of the model."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from engramfs.errors import Unavailable
from engramfs.search import EmbedderSettings, Place

from .conftest import Book, Opened, Query, paths, put

TOPICS = ("tea", "cat", "port")


class Endpoint:
    """Answers with a vector that counts topics; remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.answer: bytes | None = None
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                endpoint.asked.append((self.headers.get("Authorization", ""), body))
                content = endpoint.answer
                if content is None:
                    content = json.dumps({"data": _embeddings(body["input"])}).encode()
                status = 401 if content == b"no" else 200
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"


def _embeddings(texts: list[str]) -> list[dict[str, object]]:
    vectors = [[float(topic in text) + 0.01 for topic in TOPICS] for text in texts]
    numbered = [{"index": at, "embedding": vector} for at, vector in enumerate(vectors)]
    return list(reversed(numbered))


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    endpoint = Endpoint()
    thread = threading.Thread(target=endpoint.server.serve_forever, args=(0.01,))
    thread.start()
    yield endpoint
    endpoint.server.shutdown()
    endpoint.server.server_close()
    thread.join()


def test_the_endpoint_is_asked_as_openai_is(book: Book, open_search: Opened, endpoint: Endpoint) -> None:
    put(book, {"a": b"about tea", "b": b"about a cat", "c": b"a port"})
    settings = EmbedderSettings(
        endpoint=endpoint.url, model="m", key="secret", question_prefix="q: ", passage_prefix="p: "
    )
    search = open_search(settings)
    assert paths(search.find(Query("cat", kind="semantic", limit=1))) == ["b"]
    authorization, body = endpoint.asked[0]
    assert authorization == "Bearer secret"
    assert body["model"] == "m"
    assert sorted(body["input"]) == ["p: a port", "p: about a cat", "p: about tea"]
    assert endpoint.asked[-1][1]["input"] == ["q: cat"]


@pytest.mark.parametrize("answer", [b"no", b"{", b"{}", b'{"data": []}', b'{"data": [{"index": 0}]}'])
def test_another_answer_names_the_endpoint_and_never_the_key(
    book: Book, open_search: Opened, endpoint: Endpoint, answer: bytes
) -> None:
    put(book, {"a": b"about tea"})
    endpoint.answer = answer
    search = open_search(EmbedderSettings(endpoint=endpoint.url, model="m", key="secret"))
    with pytest.raises(Unavailable, match=endpoint.url) as raised:
        search.find(Query("tea", kind="semantic"))
    assert "secret" not in raised.value.message
    assert paths(search.find(Query("tea", kind="keyword"))) == ["a"]


def test_without_the_endpoint_words_are_searched_and_that_is_said(book: Book, open_search: Opened) -> None:
    put(book, {"a": b"about tea"})
    search = open_search(EmbedderSettings(endpoint="http://127.0.0.1:9/v1", model="m"))
    assert paths(search.find(Query("tea"))) == ["a"]
    assert paths(search.find(Query("tea", kind="hybrid"))) == ["a"]
    with pytest.raises(Unavailable, match="does not answer"):
        search.find(Query("tea", kind="semantic"))
    assert search.notice is not None
    assert "does not answer" in search.notice
    assert not search.has_meaning
    assert search.catch_up(10), "by keywords"
    assert search.wait(1, 10), "it can be found by them"
    assert search.candidates("tea", Place(book.store.name))


def test_a_model_that_was_exchanged_behind_the_endpoint_is_named(
    book: Book, open_search: Opened, endpoint: Endpoint
) -> None:
    put(book, {"a": b"about tea"})
    search = open_search(EmbedderSettings(endpoint=endpoint.url, model="m"))
    assert search.find(Query("tea"))[0].matched == ("keyword", "semantic")
    endpoint.answer = b'{"data": [{"index": 0, "embedding": [1, 0]}]}'
    assert search.find(Query("tea"))[0].matched == ("keyword",)
    assert search.notice is not None
    assert "answers 2 numbers for a text, and what is indexed has 3" in search.notice


def test_words_alone_are_searched_without_the_endpoint(
    book: Book, open_search: Opened, endpoint: Endpoint
) -> None:
    put(book, {"a": b"about tea"})
    search = open_search(EmbedderSettings(endpoint=endpoint.url, model="m"))
    assert paths(search.find(Query("tea", kind="keyword"))) == ["a"]
    assert search.catch_up(10, meaning=False)
    assert endpoint.asked == []


def test_an_endpoint_that_did_not_answer_is_not_asked_again_at_once(
    book: Book, open_search: Opened, endpoint: Endpoint
) -> None:
    put(book, {"a": b"about tea"})
    endpoint.answer = b"{"
    search = open_search(EmbedderSettings(endpoint=endpoint.url, model="m"))
    for _ in range(2):
        assert search.find(Query("tea", kind="hybrid"))[0].matched == ("keyword",)
        with pytest.raises(Unavailable, match=f"^{endpoint.url}"):
            search.find(Query("tea", kind="semantic"))
    assert len(endpoint.asked) == 1


def test_an_endpoint_that_answers_again_is_used_again(
    book: Book, open_search: Opened, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engramfs.search.following._AGAIN", 0.0)
    put(book, {"a": b"about tea"})
    search = open_search(EmbedderSettings(endpoint=endpoint.url, model="m"))
    endpoint.answer = b"{"
    assert search.find(Query("tea"))[0].matched == ("keyword",)
    assert search.notice
    endpoint.answer = None
    assert search.find(Query("tea"))[0].matched == ("keyword", "semantic")
    assert not search.notice
