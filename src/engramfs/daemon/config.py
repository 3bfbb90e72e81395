"""The configuration: frozen, complete, checked. Every setting has a default, so there need be no file.

Shapes of the file are the structs that end in `Table`; what the rest of the program takes is `Config`
and, for one agent, `AgentConfig` with its preset resolved.
"""

import os
from typing import Literal

import msgspec

from engramfs.daemon import strict_toml
from engramfs.daemon.strict_toml import Seconds, Size, nearest
from engramfs.errors import ConfigurationError, EngramError, NotFound, UsageError
from engramfs.model.access import Access
from engramfs.model.names import check_id, check_store_name
from engramfs.model.store import DEFAULT_MAX_FILE_SIZE, DEFAULT_QUOTA, Limits
from engramfs.model.transient import DEFAULT_PATTERNS
from engramfs.search.embedder import EmbedderSettings

Scope = Literal["actor", "tenant", "agent", "none"]
Tenancy = Literal["single", "multi"]
Preset = Literal["private-assistant", "internal-tool", "service", "multi-tenant"]

DEFAULT_AGENT = "default"
MOST_INSTRUCTIONS = 4096  # characters of one attachment
DEFAULT_MEMORY = {"preferences": Access.READ_ONLY, "state": Access.READ_WRITE}
_PRESETS: dict[Preset, tuple[Scope, Tenancy]] = {
    "private-assistant": ("actor", "single"),
    "internal-tool": ("actor", "single"),
    "service": ("agent", "single"),
    "multi-tenant": ("tenant", "multi"),
}


class BatchTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When closed writes become a version."""

    quiet: Seconds = Seconds(0.05)
    max_age: Seconds = Seconds(1.0)
    durability: Literal["batch", "close"] = "batch"
    transient: tuple[str, ...] = DEFAULT_PATTERNS  # names that never enter the log


class LimitsTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Defaults for new stores."""

    max_file_size: Size = Size(DEFAULT_MAX_FILE_SIZE)
    quota: Size = Size(DEFAULT_QUOTA)


class JournalTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    max_bytes: Size = Size(256 << 20)


class GcTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    every: Seconds = Seconds(86_400.0)  # from one collection to the next; 0: only when somebody asks


class SearchTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How meaning is searched: by the model of the extra `[semantic]`, by an endpoint, or not at all."""

    semantic: bool = True
    endpoint: str = ""  # the base URL of an OpenAI-compatible API
    model: str = ""
    key_variable: str = ""  # the environment variable that holds the endpoint's key
    question_prefix: str = ""  # what the endpoint's model wants before questions and passages
    passage_prefix: str = ""

    def settings(self) -> EmbedderSettings:
        """For the search. Raises `ConfigurationError` when the key's variable is not set."""
        key = os.environ.get(self.key_variable, "") if self.key_variable else ""
        if self.key_variable and not key:
            raise ConfigurationError(
                f"search.key_variable names {self.key_variable}, which is not set; set it"
            )
        return EmbedderSettings(
            self.semantic, self.endpoint, self.model, key, self.question_prefix, self.passage_prefix
        )


class ScopingTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    memory: Scope


class AgentTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[agents.NAME]`: either `preset`, or `scoping.memory` and `tenancy`, or neither."""

    preset: Preset | None = None
    scoping: ScopingTable | None = None
    tenancy: Tenancy | None = None
    contexts: tuple[str, ...] | None = None
    memory: dict[str, Access] = msgspec.field(default_factory=lambda: dict(DEFAULT_MEMORY))
    org: bool | None = None
    unattended: bool = False
    record_learnings: bool = False
    instructions: dict[str, str] = {}


class AgentConfig(msgspec.Struct, frozen=True):
    """What one agent's sessions are made of."""

    name: str
    scope: Scope | None = None  # None: the actor's when one is given, else the agent's
    tenancy: Tenancy = "single"
    contexts: tuple[str, ...] | None = None  # slugs; None: every context
    memory: tuple[tuple[str, Access], ...] = tuple(DEFAULT_MEMORY.items())
    org: bool | None = None  # None: when the store exists
    unattended: bool = False  # nobody is there to be asked: tools that would have to are refused
    record_learnings: bool = False  # the agent is told to record what it learned before it finishes
    instructions: tuple[tuple[str, str], ...] = ()  # what it is told of an attachment, by short name


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    batch: BatchTable = BatchTable()
    limits: LimitsTable = LimitsTable()
    journal: JournalTable = JournalTable()
    gc: GcTable = GcTable()
    search: SearchTable = SearchTable()
    agents: dict[str, AgentTable] = {}

    def store_limits(self) -> Limits:
        """The limits of a new store of which nothing else is said."""
        return Limits(int(self.limits.max_file_size), int(self.limits.quota))

    def agent(self, name: str | None = None) -> AgentConfig:
        """The agent called `name`, or without a name the only one that there is.

        While the file configures no agents, any name has the defaults. Raises `InvalidName`,
        `NotFound`, and `UsageError` when no name was given and there are several.
        """
        if name is None:
            name = self._only_agent()
        check_id(name, "agent")
        if not self.agents:
            return AgentConfig(name)
        if name not in self.agents:
            hint = nearest(name, list(self.agents))
            raise NotFound(f"no agent {name} is configured; {hint}")
        return _resolve(name, self.agents[name])

    def _only_agent(self) -> str:
        if not self.agents or DEFAULT_AGENT in self.agents:
            return DEFAULT_AGENT
        if len(self.agents) == 1:
            return next(iter(self.agents))
        raise UsageError(f"which agent? choose one with --agent: {', '.join(sorted(self.agents))}")


def load(path: str, *, required: bool = True) -> Config:
    """The configuration in `path`; the defaults when there is no such file and it is not `required`.

    Raises `ConfigurationError`, one line that names the file, the key and what to write instead.
    """
    if not required and not os.path.lexists(path):
        return Config()
    config = strict_toml.read(path, Config)
    try:
        _check_values(config)
    except EngramError as error:
        raise ConfigurationError(f"{path}: {error.message}") from error
    return config


def _check_values(config: Config) -> None:
    if config.batch.max_age < config.batch.quiet:
        raise UsageError("batch.max_age is shorter than batch.quiet; make it longer")
    for key, size in (
        ("limits.max_file_size", config.limits.max_file_size),
        ("limits.quota", config.limits.quota),
        ("journal.max_bytes", config.journal.max_bytes),
    ):
        if not 1 <= size < 1 << 62:
            raise UsageError(f"{key} is {size}; it must be at least 1 byte and below 4 EiB")
    _check_search(config.search)
    for name, agent in config.agents.items():
        check_id(name, "agent")
        _resolve(name, agent)
        for slug in agent.contexts or ():
            check_store_name(f"contexts/{slug}")
        for memory in agent.memory:
            if "/" in memory:
                raise UsageError(f"agents.{name}.memory.{memory} holds a '/'; use a single name like state")
            check_store_name(f"memory/{name}/{memory}")
        for told, text in agent.instructions.items():
            if len(text) > MOST_INSTRUCTIONS:
                raise UsageError(
                    f"agents.{name}.instructions.{told} has {len(text):,} characters; at most "
                    f"{MOST_INSTRUCTIONS:,} are told"
                )


def _check_search(search: SearchTable) -> None:
    if search.endpoint and not search.endpoint.startswith(("http://", "https://")):
        raise UsageError(f"search.endpoint is {search.endpoint!r}; write a URL like http://127.0.0.1:8000/v1")
    if search.endpoint and not search.model:
        raise UsageError("search.endpoint has no search.model beside it; name the model")


def _resolve(name: str, agent: AgentTable) -> AgentConfig:
    if agent.preset is not None and (agent.scoping is not None or agent.tenancy is not None):
        raise UsageError(
            f"agents.{name} has a preset beside scoping.memory or tenancy, which it decides; keep one of them"
        )
    scope: Scope | None
    if agent.preset is not None:
        scope, tenancy = _PRESETS[agent.preset]
    else:
        scope = agent.scoping.memory if agent.scoping else None
        tenancy = agent.tenancy or "single"
    return AgentConfig(
        name=name,
        scope=scope,
        tenancy=tenancy,
        contexts=agent.contexts,
        memory=tuple(agent.memory.items()),
        org=agent.org,
        unattended=agent.unattended,
        record_learnings=agent.record_learnings,
        instructions=tuple(agent.instructions.items()),
    )
