"""YAML front matter: fields between two `---` lines, then the text. Needs PyYAML, which the extras bring.

It is written by programs and edited by people, so it is read leniently: what cannot be read is text.
"""

from functools import cache
from typing import Any

FENCE = "---"
LONGEST = 64 << 10  # characters of front matter that are parsed; more is taken for text


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

    source = yaml.safe_dump(fields, allow_unicode=True, sort_keys=False, width=1000)
    return f"{FENCE}\n{source}{FENCE}\n{text}"


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
    base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return type("PlainLoader", (base,), {"yaml_implicit_resolvers": resolvers})
