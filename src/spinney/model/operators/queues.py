"""Queues as operators see them, with their settings and what is in them, and the changes that operators make.

A setting of an operator takes precedence over the declaration of an application, field by field, and survives
every new declaration. To take it back is a change of its own (``QueueChange.declared``), because "no limit"
is a setting, too."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from spinney.model.settings.queues import QueueSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueChange:
    """Changes of a queue's settings by an operator. Other settings stay. They are applied in this order."""

    declared: tuple[str, ...] = ()
    """Fields (``limit``, ``type``, ``pinned``, ``barred``) that go back to the declared values."""
    set: Mapping[str, Any] = field(default_factory=dict)
    """Fields and their new values; a limit of None is no limit, which is not the same as the declared one."""
    unpin: tuple[str, ...] = ()
    """Nodes to be removed from those that are pinned."""
    pin: tuple[str, ...] = ()
    """Nodes to be added to those that are pinned already."""
    unbar: tuple[str, ...] = ()
    """Nodes to be removed from those that are barred."""
    bar: tuple[str, ...] = ()
    """Nodes to be added to those that are barred already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueInfo:
    """A queue's settings and the nodes that serve it, as of one snapshot."""

    queue: str
    in_force: QueueSpec
    declared: QueueSpec | None
    """The settings that applications declare; None: no application declares the queue."""
    settings: Mapping[str, Any]
    """The fields that operators have set; they take precedence over the declared ones."""
    by: str | None
    """Who changed the settings last, if any are set."""
    at_us: int | None
    pending: int
    running: int
    """The number of occupied slots."""
    active: int
    """How many nodes take new jobs, whether they may serve the queue or not."""
    nodes: tuple[str, ...]
    """The names of those of them that may serve it."""
    nodes_without_types: tuple[str, ...]
    """Those of these nodes that know none of its types, if it has any."""
    types: tuple[str, ...]
    """Its default type, and the types of its jobs that are pending or occupy a slot."""
    unknown: tuple[str, ...]
    """Those of these types that no such node knows; their jobs are not claimed."""
    unserved: tuple[str, ...]
    """Those of these types that such nodes know, but none that may serve the queue."""
    limit: int | None = None
    """How many slots it may occupy now; where the limit is a part, the number that it means."""
