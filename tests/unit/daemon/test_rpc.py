"""Errors cross the control socket and are raised again as what they were."""

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

from engramfs import errors
from engramfs.daemon import rpc
from engramfs.daemon.client import ControlClient


def over_the_wire(error: BaseException) -> errors.EngramError:
    return rpc.error_from(rpc.decode(rpc.failure(1, error))["error"])


def tree(root: type[errors.EngramError]) -> Iterator[type[errors.EngramError]]:
    yield root
    for kind in root.__subclasses__():
        if kind.__module__ == errors.__name__:
            yield from tree(kind)


@pytest.mark.parametrize("kind", list(tree(errors.EngramError)), ids=lambda kind: kind.__name__)
def test_every_error_comes_back_as_the_same_class(kind: type[errors.EngramError]) -> None:
    raised = over_the_wire(kind("what; why; what to do"))
    assert type(raised) is kind
    assert raised.message == "what; why; what to do"


def test_a_call_that_the_daemon_would_not_read_to_its_end_is_too_large(tmp_path: Path) -> None:
    with pytest.raises(errors.TooLarge, match="a call of edit has at most 16,777,216 bytes"):
        ControlClient(str(tmp_path)).call("edit", content="x" * rpc.MAX_REQUEST)


def test_the_code_on_the_wire_follows_the_exit_code() -> None:
    assert rpc.error_object(errors.NotFound("x")) == {
        "code": -32003,
        "message": "x",
        "data": {"code": "not_found"},
    }


def test_a_posix_error_carries_its_errno() -> None:
    assert rpc.error_object(errors.NotEmpty("x"))["data"] == {"code": "posix", "errno": errno.ENOTEMPTY}


def test_an_error_that_a_nursery_wrapped_is_unwrapped() -> None:
    group = ExceptionGroup("outer", [ExceptionGroup("inner", [errors.Archived("closed")])])
    assert type(over_the_wire(group)) is errors.Archived


def test_a_programming_error_is_an_internal_error() -> None:
    assert rpc.error_object(KeyError("x"))["code"] == rpc.INTERNAL_ERROR
    assert type(over_the_wire(KeyError("x"))) is errors.EngramError


def test_paths_that_are_not_utf8_survive() -> None:
    message = rpc.decode(rpc.request(1, "restore", {"path": "a\udcff\n"}))
    assert message["params"] == {"path": "a\udcff\n"}
    assert rpc.request(1, "restore", {"path": "a\udcff\n"}).count(b"\n") == 1


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{", rpc.PARSE_ERROR),
        (b"\xff", rpc.PARSE_ERROR),
        (b"[" * 100_000, rpc.PARSE_ERROR),
        (b"[]", rpc.INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":1}', rpc.INVALID_REQUEST),
        (b'{"jsonrpc":"1.0","id":1,"method":"a"}', rpc.INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":[],"method":"a"}', rpc.INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":1,"method":"a","params":[1]}', rpc.INVALID_PARAMS),
    ],
)
def test_what_is_no_request_is_refused_with_the_standard_code(line: bytes, code: int) -> None:
    with pytest.raises(rpc.InvalidMessage) as caught:
        rpc.decode_request(line)
    assert caught.value.rpc_code == code
