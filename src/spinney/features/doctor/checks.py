"""The values that every checker of the doctor exchanges: a rule (``Check``), and one case in which it does
not hold (``Violation``).

Both are answers of the API and lines of ``doctor --json``, so ``rule`` and ``subject`` are stable words that
scripts may rely on, while the sentences may be reworded at any time.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A violation of one of the store's invariants that the doctor has found, with the repair if there is a safe
    one."""

    rule: str
    """The name of the violated rule, for programs: ``lease-without-job``, …"""
    subject: str
    """The row or folder that violates the rule: ``job 17``, ``folder 00/00/00/000000000017``, ``lock x``.
    Together with ``rule`` it identifies the violation from one examination to the next."""
    sentence: str
    """What is wrong, for people, and where no repair is safe, what to do."""
    repair: str | None = None
    """What ``--repair`` would do; None: no repair is safe, and the sentence says what a person should do."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """The values by which it was detected, the key of its row among them. A repair looks the row up again by
    this key, and changes it only if the rule still does not hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One invariant that the doctor checks, as ``doctor --rules`` lists it."""

    rule: str
    """The name of the rule, for programs and for ``--only``."""
    about: str
    """The invariant as a sentence, as lists of rules show it."""
    repairs: bool
    """Whether ``--repair`` can repair its violations. A rule without a repair reports what to do in each
    violation's sentence."""
    deep: bool = False
    """Whether the rule takes long, so that it is only checked on request (``--deep``, or when ``--only``
    names it)."""
