"""Make the file of means that the bundled embedder takes away from its vectors.

    python -m tests.bench.language_means

The texts are short notes in each language (`data/notes/`), about nothing that the labelled questions are
about.
"""

from pathlib import Path

import numpy

from engramfs.search.bundled_embedder import LANGUAGES, MEANS
from engramfs.search.bundled_model import embed_raw

_NOTES = Path(__file__).parent / "data" / "notes"


def main() -> None:
    notes = [(_NOTES / f"{language}.txt").read_text("utf-8").splitlines() for language in LANGUAGES]
    means = [
        [embed_raw(texts, is_question=is_question).mean(axis=0) for texts in notes]
        for is_question in (False, True)
    ]
    numpy.save(MEANS, numpy.array(means, dtype=numpy.float16), allow_pickle=False)


if __name__ == "__main__":
    main()
