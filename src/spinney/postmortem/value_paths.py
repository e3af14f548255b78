"""Follow an expression such as ``order.rows[3]['id']`` along the values that were kept.

Nothing is evaluated: the expression must consist of steps that the document has, as they are written there.
"""

import re
from collections.abc import Iterator, Mapping

from spinney.model.errors import UsageError
from spinney.postmortem.documents import Described, left_out, parts

_STEP = re.compile(
    r"\.flat\[\d+\]|\.iloc\[\d+\]|\.\w+|\[(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[^\]]*)\]|\{\d+\}"
)
"""Matches one step at the beginning of a text. A key in quotes may contain brackets."""
_NAME = re.compile(r"\.?\w+")
_QUOTED_KEY = re.compile(r"\[(['\"])(.*)\1\]", re.DOTALL)
"""Matches a step whose key is in quotes."""
_ESCAPE = re.compile(r"\\([^'\"])|\\(['\"])")
"""Matches a backslash and what it escapes; the second group is a quote, which needs it in one kind of quotes only."""


def follow(variables: Mapping[str, Described], expression: str) -> Described:
    """Return the description that an expression such as ``order.rows[3]['id']`` leads to, from the variables
    of a frame.

    Raises UsageError, which names the steps that there are instead, where a step was not kept or cannot be
    parsed.
    """
    head = _NAME.match(expression)
    if head is None:
        raise UsageError(f"{expression!r} begins with no variable; write for example: p order.rows[3]['id']")
    described = variables.get(head[0])
    if described is None:
        raise UsageError(f"this frame has no variable {head[0]!r}; it has {_listed(variables)}")
    at = head.end()
    while at < len(expression):
        step = _STEP.match(expression, at)
        if step is None:
            raise UsageError(f"{expression[at:]!r} is no step; steps are .name, [3] and ['key']")
        described = _part(described, step[0], expression[:at])
        at = step.end()
    return described


def completions(variables: Mapping[str, Described], beginning: str) -> Iterator[str]:
    """Yield the expressions that begin so, for completion at a terminal: variables, or the steps behind the
    last whole step of ``beginning``."""
    yield from (name for name in variables if name.startswith(beginning))
    for end in range(len(beginning), 0, -1):
        try:
            described = follow(variables, beginning[:end])
        except UsageError:
            continue
        whole = (beginning[:end] + step for step, _ in parts(described))
        yield from (text for text in whole if text.startswith(beginning) and text != beginning)
        return


def _part(described: Described, step: str, path: str) -> Described:
    """Return the description of a part; keys may be in quotes of either kind. Raises UsageError, which names
    the parts that were kept."""
    key_text = _key_text(step)
    for other, part in parts(described):
        if _key_text(other) == key_text:
            return part
    steps = [other for other, _ in parts(described)]
    more = left_out(described)
    kept = f"kept are {_listed(steps)}" if steps else "no part of it was kept"
    raise UsageError(f"{path} has no {step}; {kept}" + (f", {more:,} more were not kept" if more else ""))


def _key_text(step: str) -> str:
    """Return a step with its key in the same quotes and escapes, whichever kind of quotes it was written in."""
    key = _QUOTED_KEY.fullmatch(step)
    if key is None:
        return step
    text = _ESCAPE.sub(lambda escape: escape[2] or escape[0], key[2])
    return f"['{text}']"


def _listed(names: Mapping[str, Described] | list[str]) -> str:
    """Return the first 20 names as text."""
    shown = list(names)[:20]
    return (", ".join(shown) or "none") + (" …" if len(names) > len(shown) else "")
