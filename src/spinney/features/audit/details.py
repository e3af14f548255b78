"""The details of a call, which the audit stores as JSON, in words: what the verb was applied to, and its arguments."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from spinney.model.values.durations import shown

LISTED = 5
"""How many items of a list are shown."""

_SUBJECTS = (
    "queue",
    "node",
    "lock",
    "schedule",
    "inbox",
    "webhook",
    "user",
    "token",
    "external_worker",
    "rule",
    "hold",
)
"""What a verb may have been applied to; it is named before the arguments."""
_LABELS = {
    "address": "from",
    "barred": "not on nodes",
    "barred_add": "not on nodes",
    "below": "below job",
    "created_after": "submitted since",
    "created_before": "submitted before",
    "declared": "as declared by the application",
    "did": "repaired by",
    "fingerprint": "failure",
    "keep": "kept",
    "lanes": "stages",
    "params": "parameters",
    "parent_id": "direct subjobs of job",
    "pinned": "only on nodes",
    "rest": "taken when unchanged for",
    "root_id": "in the tree of job",
    "roots_only": "batches and single jobs only",
    "settled_after": "settled since",
    "settled_before": "settled before",
    "states": "state",
    "tree": "with all subjobs",
    "which": "filter",
    "within": "only",
}
"""The words for names that do not explain themselves; other names are shown with blanks for underscores."""
_WHOLE: Mapping[tuple[str, Any], str] = {
    ("keep_s", None): "kept for ever",
    ("slots", None): "slots as each node is started with",
    ("barred", "none"): "barred from no node",
    ("pinned", "none"): "pinned to no node",
    ("password", True): "with a password",
    ("password", False): "without a password",
}
"""The words for names with a certain value. Other null values and flags that are not set are left out."""


def in_words(what: Mapping[str, Any], moment: Callable[[int], str], count: int = 0) -> str:
    """Return details as text: ``queue slow, limit 6``. Lists are cut, and empty values and flags that are not set are
    left out. ``moment`` writes a time in microseconds since 1970; names that end in ``_us`` are such times, those that
    end in ``_s`` durations in seconds. ``count``: how many jobs there are in all, which may be more than are named."""
    return ", ".join(_parts(_with_one_subject(what), moment, count))


def _with_one_subject(what: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the details in the order in which they are shown: first what the verb was applied to, last the filter of
    a verb on many jobs. The subject is named once: a hold by its number and what it is on."""
    rest = dict(what)
    if "scope" in rest:
        on = f"{rest.pop('scope')} {rest.pop('name', None) or ''}".strip()
        rest["hold"] = f"{rest.get('hold', '')} on {'all jobs' if on == 'all' else on}".strip()
    first = {name: rest.pop(name) for name in _SUBJECTS if name in rest}
    if "name" in rest and rest["name"] in first.values():
        del rest["name"]
    last = {"which": rest.pop("which")} if "which" in rest else {}
    return {**first, **rest, **last}


def _parts(what: Mapping[str, Any], moment: Callable[[int], str], count: int = 0) -> list[str]:
    """Return each detail with its name."""
    parts: list[str] = []
    for name, value in what.items():
        if isinstance(value, dict) and name == "rights":
            parts += _parts(value, moment)
        elif text := _detail(name, value, moment, count):
            parts.append(text)
    return parts


def _detail(name: str, value: Any, moment: Callable[[int], str], count: int) -> str:
    """Return one of the details with its name; empty for an empty value and a flag that is not set."""
    if isinstance(value, Hashable) and (name, value) in _WHOLE:
        return _WHOLE[name, value]
    words = _value(value, moment)
    if not words or value is False:
        return ""
    if name.endswith("_us") and type(value) is int:
        name, words = name.removesuffix("_us"), moment(value)
    elif name.endswith("_s"):
        name, words = name.removesuffix("_s"), shown(value) if type(value) in (int, float) else words
    elif name == "priorities" and isinstance(value, list):
        words = " to ".join(map(str, value))
    elif name in ("params", "which"):
        words = f"({words})"
    if name == "jobs" and isinstance(value, list):
        words = _listed(value, moment, max(count, len(value)))
        name = "job" if words == str(value[0]) else "jobs"
    label = _LABELS.get(name, name.replace("_", " "))
    return label if value is True else f"{label} {words}"


def _value(value: Any, moment: Callable[[int], str]) -> str:
    """Return a value as text."""
    if value is None:
        return ""
    if isinstance(value, dict):
        return ", ".join(_parts(value, moment))
    if isinstance(value, list):
        return _listed(value, moment, len(value))
    return str(value)


def _listed(items: Sequence[Any], moment: Callable[[int], str], count: int) -> str:
    """Return the first of ``count`` items as text, and how many more there are."""
    shown_items = items[:LISTED]
    more = f" and {count - len(shown_items):,} more" if count > len(shown_items) else ""
    return " ".join(_value(item, moment) for item in shown_items) + more
