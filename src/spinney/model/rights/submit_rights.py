"""Whether somebody's rights allow jobs of a type, and parameters that name what the rights are limited to.

What a type says (``TypeSpec.submit`` and ``submit_limits``) is judged here for everybody who asks: for a person at the
moment of a submission, and for the maker of a schedule at each of its times.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spinney.model.access import Rights, Role
from spinney.model.types import INTERNAL, TypeSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class BeyondLimit:
    """A parameter names something that the rights do not reach."""

    parameter: str
    """Its path: ``collection``, or ``order.profile`` of one within another."""
    limit: str
    """``collection``, ``queue``, ``share`` or ``submitter``."""
    allowed: Sequence[str]


def may_submit(spec: TypeSpec, rights: Rights) -> bool:
    """Whether somebody with these rights may submit some job of this type through a server."""
    return spec.submit != INTERNAL and rights.permits(Role(spec.submit))


def beyond_limit(spec: TypeSpec, params: Any, rights: Rights, name: str) -> BeyondLimit | None:
    """The first parameter that names something beyond the limits of ``name``, who has these rights; None: there is
    none. ``params``: the decoded JSON."""
    for limit, path in spec.submit_limits.items():
        allowed = _allowed(limit, rights, name)
        if allowed is None:
            continue
        value = _value_at(params, path)
        # A list has to lie within as a whole. What is left out does not: the code might take anything for it.
        values = value if isinstance(value, list) and value else [value]
        if not all(isinstance(each, str) and _is_within(limit, each, allowed, rights) for each in values):
            return BeyondLimit(parameter=path, limit=limit, allowed=allowed)
    return None


def _allowed(limit: str, rights: Rights, name: str) -> Sequence[str] | None:
    """None: anything."""
    if limit == "submitter":
        return None if rights.permits(Role.OPERATOR) else (name,)
    return {"collection": rights.within.collections, "queue": rights.within.queues, "share": rights.shares}[
        limit
    ]


def _is_within(limit: str, value: str, allowed: Sequence[str], rights: Rights) -> bool:
    return rights.names_share(value) if limit == "share" else value in allowed


def _value_at(params: Any, path: str) -> Any:
    for step in path.split("."):
        params = params.get(step) if isinstance(params, Mapping) else None
    return params
