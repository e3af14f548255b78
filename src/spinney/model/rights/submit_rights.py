"""Whether a caller's rights allow jobs of a type, and parameters that name what the rights are limited to.

These functions check a type's ``submit`` and ``submit_limits``: for a caller at a submission, and for the creator of a
schedule at each of its times."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spinney.model.access import Rights, Role
from spinney.model.errors import UsageError
from spinney.model.types import INTERNAL, TypeSpec
from spinney.model.values.hints import did_you_mean


@dataclass(frozen=True, slots=True, kw_only=True)
class BeyondLimit:
    """A parameter that names something beyond the rights."""

    parameter: str
    """Its path: ``collection``, or ``order.profile`` for a nested one."""
    limit: str
    """The kind of the limit: ``collection``, ``queue``, ``share`` or ``submitter``."""
    allowed: Sequence[str]


def may_submit(spec: TypeSpec, rights: Rights) -> bool:
    """Return whether these rights allow some job of this type to be submitted through a server."""
    return spec.submit != INTERNAL and rights.permits(Role(spec.submit))


def require_limited(type_name: str, limits: Mapping[str, str], parameters: Collection[str]) -> None:
    """Raise UsageError unless every path begins with one of these parameters. It is checked when a type is declared,
    because a limited caller could submit no job of a type whose limit has a typo."""
    for limit, path in limits.items():
        name = path.partition(".")[0]
        if name not in parameters:
            raise UsageError(
                f"job type {type_name!r} has the submit_limits {{{limit!r}: {path!r}}}, but no parameter "
                f"{name!r}{did_you_mean(name, parameters)}; add it to a stage or correct the limit"
            )


def beyond_limit(spec: TypeSpec, params: Any, rights: Rights, name: str) -> BeyondLimit | None:
    """Return the first parameter that names something beyond the limits of ``name``, who has these rights; None: there
    is none. ``params``: the decoded JSON."""
    for limit, path in spec.submit_limits.items():
        allowed = _allowed(limit, rights, name)
        if allowed is None:
            continue
        value = _value_at(params, path)
        # All items of a list have to be within the limit. A missing value is not: the code might use anything for it.
        values = value if isinstance(value, list) and value else [value]
        if not all(isinstance(item, str) and _is_within(limit, item, allowed, rights) for item in values):
            return BeyondLimit(parameter=path, limit=limit, allowed=allowed)
    return None


def _allowed(limit: str, rights: Rights, name: str) -> Sequence[str] | None:
    """Return the allowed values; None: any."""
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
