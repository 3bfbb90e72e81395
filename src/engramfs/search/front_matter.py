"""YAML front matter, read as leniently as a hand-edited file needs."""

from typing import Any

import yaml

_FENCE = "---"
_LONGEST = 64 << 10  # characters of front matter that are parsed


class _PlainLoader(yaml.SafeLoader):
    """Scalars of YAML without dates: a time stays the text that is in the file."""


_PlainLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def split(text: str) -> tuple[dict[str, Any], str, int]:
    """The fields of the front matter, the text below it, and the line (1-based) on which that begins.

    Without front matter that can be read there are no fields, and the whole text is the text.
    """
    lines = text.split("\n")
    if lines[0].rstrip() != _FENCE:
        return {}, text, 1
    end = next((at for at, line in enumerate(lines[1:], 1) if line.rstrip() in (_FENCE, "...")), None)
    if end is None:
        return {}, text, 1
    return _fields("\n".join(lines[1:end])), "\n".join(lines[end + 1 :]), end + 2


def _fields(source: str) -> dict[str, Any]:
    if len(source) > _LONGEST:
        return {}
    try:
        loaded = yaml.load(source, _PlainLoader)
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}
    return loaded if isinstance(loaded, dict) else {}
