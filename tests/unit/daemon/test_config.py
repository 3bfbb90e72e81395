"""The configuration is strict, complete without a file, and its errors are one line that help."""

from pathlib import Path

import pytest

from engramfs.daemon.config import AgentConfig, Config, Scope, Tenancy, load
from engramfs.errors import ConfigurationError, NotFound, UsageError
from engramfs.model.access import Access
from engramfs.model.store import Limits
from engramfs.model.transient import DEFAULT_PATTERNS


def load_text(tmp_path: Path, text: str) -> Config:
    path = tmp_path / "engramfs.toml"
    path.write_text(text)
    return load(str(path))


def refusal(tmp_path: Path, text: str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        load_text(tmp_path, text)
    assert "\n" not in caught.value.message
    assert str(tmp_path / "engramfs.toml") in caught.value.message
    return caught.value.message


def test_without_a_file_there_are_the_documented_defaults(tmp_path: Path) -> None:
    config = load(str(tmp_path / "absent.toml"), required=False)
    assert config.batch.quiet == 0.05
    assert config.batch.max_age == 1.0
    assert config.batch.durability == "batch"
    assert config.batch.transient == DEFAULT_PATTERNS
    assert config.store_limits() == Limits(64 << 20, 10 << 30)
    assert config.journal.max_bytes == 256 << 20
    assert config.agent() == AgentConfig("default")
    assert dict(config.agent().memory) == {"preferences": Access.READ_ONLY, "state": Access.READ_WRITE}


def test_a_file_that_was_named_has_to_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="does not exist"):
        load(str(tmp_path / "absent.toml"))


def test_the_example_of_the_design_is_understood(tmp_path: Path) -> None:
    config = load_text(
        tmp_path,
        """
        [batch]
        quiet = "20ms"
        max_age = "2s"
        durability = "close"
        transient = ["*.part"]

        [limits]
        max_file_size = "1MiB"
        quota = 4096

        [journal]
        max_bytes = "1GiB"

        [agents.digest]
        preset = "private-assistant"
        contexts = ["handbook"]
        memory = { preferences = "read_only", scratch = "read_write" }
        org = true
        """,
    )
    assert (config.batch.quiet, config.batch.max_age, config.batch.durability) == (0.02, 2.0, "close")
    assert config.batch.transient == ("*.part",)
    assert config.store_limits() == Limits(1 << 20, 4096)
    assert config.journal.max_bytes == 1 << 30
    memory = (("preferences", Access.READ_ONLY), ("scratch", Access.READ_WRITE))
    assert config.agent("digest") == AgentConfig("digest", "actor", "single", ("handbook",), memory, True)


@pytest.mark.parametrize(
    ("preset", "scope", "tenancy"),
    [
        ("private-assistant", "actor", "single"),
        ("internal-tool", "actor", "single"),
        ("service", "agent", "single"),
        ("multi-tenant", "tenant", "multi"),
    ],
)
def test_presets_resolve(tmp_path: Path, preset: str, scope: Scope | None, tenancy: Tenancy) -> None:
    agent = load_text(tmp_path, f'[agents.a]\npreset = "{preset}"').agent("a")
    assert (agent.scope, agent.tenancy) == (scope, tenancy)


def test_scoping_and_tenancy_can_be_written_out(tmp_path: Path) -> None:
    agent = load_text(tmp_path, '[agents.a]\nscoping.memory = "actor"\ntenancy = "multi"').agent("a")
    assert (agent.scope, agent.tenancy) == ("actor", "multi")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("[batc]", ["unknown key 'batc'", "did you mean batch?"]),
        ('[batch]\nquite = "1s"', ["unknown key 'quite' in [batch]", "did you mean quiet?"]),
        ('[agents.digest]\ncontext = ["a"]', ["'context' in [agents.digest]", "did you mean contexts?"]),
        ('[agents.a.scoping]\nmemori = "actor"', ["[agents.a.scoping]", "did you mean memory?"]),
        ("[limits]\nzzz = 1", ["unknown key 'zzz' in [limits]", "known are max_file_size, quota"]),
    ],
)
def test_an_unknown_key_names_the_nearest_known_one(tmp_path: Path, text: str, parts: list[str]) -> None:
    message = refusal(tmp_path, text)
    for part in parts:
        assert part in message


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ('[batch]\nquiet = "soon"', "batch.quiet: 'soon' is not a duration"),
        ("[batch]\nquiet = 50", "batch.quiet: 50 has no unit"),
        ('[limits]\nquota = "many"', "limits.quota: 'many' is not a size"),
        ("[limits]\nquota = true", "limits.quota"),
        ("[limits]\nquota = 0", "limits.quota is 0"),
        ('[batch]\ndurability = "never"', "batch.durability"),
        ('[batch]\nquiet = "5s"', "max_age is shorter"),
        ('[agents.a]\npreset = "private"', "Invalid enum value 'private'"),
        ('[agents.a]\npreset = "service"\ntenancy = "multi"', "keep one of them"),
        ('[agents.a]\ncontexts = ["../b"]', "'..'"),
        ('[agents.a]\nmemory = { "x/y" = "read_only" }', "holds a '/'"),
        ('[agents.a]\nmemory = { x = "write" }', "'write'"),
        ('[agents."a b"]', "agent id 'a b' is not allowed"),
        ('[search]\nendpoint = "file:///etc"\nmodel = "m"', "write a URL"),
        ('[search]\nendpoint = "http://127.0.0.1"', "name the model"),
        ("[batch\n", "is not TOML"),
        ("batch = 3", "batch"),
    ],
)
def test_a_bad_value_is_refused_by_name(tmp_path: Path, text: str, part: str) -> None:
    assert part in refusal(tmp_path, text)


def test_the_key_of_an_endpoint_is_in_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = '[search]\nendpoint = "https://example.org/v1"\nmodel = "m"\nkey_variable = "THE_KEY"'
    search = load_text(tmp_path, text).search
    monkeypatch.setenv("THE_KEY", "secret")
    assert search.settings().key == "secret"
    monkeypatch.delenv("THE_KEY")
    with pytest.raises(ConfigurationError, match="THE_KEY"):
        search.settings()


def test_an_agent_that_is_not_configured_is_not_found(tmp_path: Path) -> None:
    config = load_text(tmp_path, "[agents.digest]\n[agents.other]")
    with pytest.raises(NotFound, match=r"did you mean digest\?"):
        config.agent("digets")
    with pytest.raises(UsageError, match="digest, other"):
        config.agent()


def test_without_configured_agents_every_name_has_the_defaults() -> None:
    assert Config().agent("anyone") == AgentConfig("anyone")
