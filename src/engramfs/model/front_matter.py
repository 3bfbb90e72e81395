"""YAML front matter: fields between two `---` lines, then the text. Needs PyYAML, which the extras bring.

It is written by programs and edited by people, so it is read leniently: what cannot be read is text. Values
are those that JSON has. An alias is none of them: a few lines of aliases of aliases stand for any number of
values.
"""

from functools import cache
from typing import Any

FENCE = "---"
LONGEST = 64 << 10  # characters of front matter that are parsed; more is taken for text
DEEPEST = 32  # lists and mappings in each other, with that of the fields
_KINDS = ("map", "seq", "str", "int", "float", "bool", "null")
_TAGS = frozenset(f"tag:yaml.org,2002:{kind}" for kind in _KINDS)


def split(text: str) -> tuple[dict[str, Any], str, int]:
    """The fields, the text below them, and the line (1-based) on which that begins.

    Without front matter that can be read there are no fields, and the whole text is the text. Times stay the
    text that is in the file.
    """
    lines = text.split("\n")
    if lines[0].rstrip() != FENCE:
        return {}, text, 1
    end = next((at for at, line in enumerate(lines[1:], 1) if line.rstrip() in (FENCE, "...")), None)
    fields = _read("\n".join(lines[1:end])) if end is not None else None
    if end is None or fields is None:
        return {}, text, 1
    return fields, "\n".join(lines[end + 1 :]), end + 2


def join(fields: dict[str, Any], text: str) -> str:
    """The front matter with `fields`, in this order, and `text` below it."""
    import yaml

    source = yaml.dump(fields, Dumper=_dumper(), allow_unicode=True, sort_keys=False, width=1000)
    return f"{FENCE}\n{source}{FENCE}\n{text}"


def depth(value: Any) -> int:
    """How many lists and mappings of `value` are in each other; 0 for a scalar. Stops above `DEEPEST`."""
    found, level = 0, [value]
    while found <= DEEPEST:
        inner: list[Any] = []
        containers = [each for each in level if isinstance(each, dict | list | tuple)]
        if not containers:
            return found
        for each in containers:
            inner += each.values() if isinstance(each, dict) else each
        found, level = found + 1, inner
    return found


def _read(source: str) -> dict[str, Any] | None:
    import yaml

    if len(source) > LONGEST:
        return None
    try:
        loaded = yaml.load(source, _loader())
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    return loaded if isinstance(loaded, dict) else None


@cache
def _loader() -> Any:
    """Scalars of YAML without dates; by LibYAML where PyYAML has it, which takes a tenth of the time."""
    import yaml

    resolvers = {
        first: [(tag, pattern) for tag, pattern in known if tag != "tag:yaml.org,2002:timestamp"]
        for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class PlainLoader(base):  # type: ignore[misc]
        yaml_implicit_resolvers = resolvers

        def construct_document(self, node: Any) -> Any:
            _check(node)
            return super().construct_document(node)

    return PlainLoader


@cache
def _dumper() -> Any:
    """Writes what is in two places twice, without an alias."""
    import yaml

    class PlainDumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
            return True

    return PlainDumper


def _check(document: Any) -> None:
    """Raises `ValueError` for what is no plain value."""
    import yaml

    seen: set[int] = set()
    waiting = [(document, 1)]
    while waiting:
        node, depth = waiting.pop()
        if id(node) in seen:
            raise ValueError("an alias")
        seen.add(id(node))
        if node.tag not in _TAGS or depth > DEEPEST:
            raise ValueError(f"{node.tag}, {depth} deep")
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    raise ValueError("a key that is no scalar")
                waiting += [(key, depth), (value, depth + 1)]
        elif isinstance(node, yaml.SequenceNode):
            waiting += [(item, depth + 1) for item in node.value]
