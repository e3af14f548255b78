"""Runs: bursts of one tag on one port, a whole number of its intervals apart.

A burst continues the run that has most bursts of those that it fits, else it begins one. A run counts when it has
enough bursts: single ones are often made by noise."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from spinney.apps.receivers.detection.bursts import Burst
from spinney.apps.receivers.detection.tags import Tag


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRules:
    """The rules by which bursts of a tag on one port make a run. The digest of a session contains them, so
    that a change lets sessions be detected afresh."""

    least: int = 3
    """A run counts from so many bursts on."""
    missed: int = 20
    """How many bursts in a row may be missing."""
    tolerance_s: float = 0.004
    """By how much a burst may come too early or late; more for each interval since the last one:"""
    drift: float = 0.0005
    """of the time that has passed, as a part of it."""


RULES = RunRules()


class Hit(NamedTuple):
    """A burst of a run that counts."""

    run: int
    """The number of its run in this session."""
    burst: Burst


@dataclass(slots=True)
class _Run:
    """A run that may still go on."""

    number: int
    last: float
    """The time of its last burst, in seconds since 1970."""
    count: int
    """How many bursts it has."""
    waiting: list[Burst]
    """The bursts of a run that does not count yet."""


class RunFinder:
    """Divides bursts into runs, as they come. Runs are numbered from 1 in the order in which they begin, also
    those that never count, so numbers have gaps."""

    def __init__(self, tags: Sequence[Tag], state: Mapping[str, Any] | None = None) -> None:
        """``state``: as the property ``state`` returned it, to go on where an earlier finder ended."""
        self._intervals = {tag.tag: tag.interval for tag in tags}
        self._runs: dict[tuple[str, int], list[_Run]] = {}
        self._number = 0
        if state:
            self._number = state["number"]
            for tag, port, number, last, count, waiting in state["runs"]:
                run = _Run(number, last, count, [Burst(*burst) for burst in waiting])
                self._runs.setdefault((tag, port), []).append(run)

    @property
    def state(self) -> dict[str, Any]:
        """Return what a later finder needs, as JSON values: the runs that may go on."""
        return {
            "number": self._number,
            "runs": [
                [tag, port, run.number, run.last, run.count, [list(burst) for burst in run.waiting]]
                for (tag, port), runs in self._runs.items()
                for run in runs
            ],
        }

    def add(self, bursts: Iterable[Burst]) -> list[Hit]:
        """Return the bursts of runs that count, in the order in which they became certain: the first bursts
        of a run come together, when it has enough."""
        return [hit for burst in bursts for hit in self._add(burst)]

    def _add(self, burst: Burst) -> list[Hit]:
        """Return the hits that this burst makes certain. Runs that no later burst can continue are
        forgotten."""
        interval = self._intervals.get(burst.tag)
        if interval is None:
            return []  # the tag has left the table since this session began
        # A run whose last burst is older cannot go on: more bursts in a row would be missing than the rules allow.
        oldest = burst.time - (RULES.missed + 1) * interval * (1 + RULES.drift) - RULES.tolerance_s
        runs = [run for run in self._runs.get((burst.tag, burst.port), ()) if run.last >= oldest]
        fitting = [run for run in runs if _fits(burst.time - run.last, interval)]
        if fitting:
            # The longest run is the likeliest; of equal ones the latest, and then the one that began first.
            run = max(fitting, key=lambda each: (each.count, each.last, -each.number))
        else:
            self._number += 1
            run = _Run(self._number, burst.time, 0, [])
            runs.append(run)
        self._runs[burst.tag, burst.port] = runs
        run.last, run.count = burst.time, run.count + 1
        run.waiting.append(burst)
        if run.count < RULES.least:
            return []
        hits = [Hit(run.number, each) for each in run.waiting]
        run.waiting = []
        return hits


def _fits(passed_s: float, interval: float) -> bool:
    """Return whether a burst belongs to a run whose last burst was so many seconds before: about a whole
    number of intervals. The clocks of tag and receiver drift, so the tolerance grows with the time."""
    intervals = round(passed_s / interval)
    late_s = abs(passed_s - intervals * interval)
    return 1 <= intervals <= RULES.missed + 1 and late_s <= RULES.tolerance_s + RULES.drift * passed_s
