"""What the doctor checks, and what it finds violated."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A violation of one of the store's invariants that the doctor has found, with the repair if there is a safe
    one."""

    rule: str
    """A word for programs: ``lease-without-job``, …"""
    subject: str
    """``job 17``, ``folder 00/00/00/000000000017``, ``lock x``."""
    sentence: str
    """What is wrong, for people, and where no repair is safe, what to do."""
    repair: str | None = None
    """What ``--repair`` would do; None: no repair is safe, and the sentence says what a person should do."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """The values by which it was detected, which are checked again before a repair."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One invariant that the doctor checks."""

    rule: str
    """A word for programs, and for ``--only``."""
    about: str
    """The invariant as a sentence."""
    repairs: bool
    """Whether ``--repair`` can repair its violations."""
    deep: bool = False
    """It takes long, and is only checked on request."""
