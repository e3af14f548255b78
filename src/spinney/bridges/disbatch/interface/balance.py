"""How many tasks each queue may run now: the rules of balancing, as pure functions.

``max_tasks`` of the document in the collection ``balance`` says how many tasks all its queues may run together, by the
time of the week: ``{"* 07:00": 5, "* 19:00": 10, "1 07:00": 5, "5 19:00": 15}`` (0 is Sunday, ``*`` every day).
``queues`` lists groups of queue names. The first group has what the others leave; among the others, an earlier one goes
before a later one. ``docs/disbatch.md`` compares these rules with those of the releases."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

KEY = re.compile(r"([*0-6]) ([01]\d|2[0-3]):([0-5]\d)")
"""A key of ``max_tasks``: the day of the week and the time."""
_DAY = 24 * 60


@dataclass(frozen=True, slots=True)
class Load:
    """What a queue has to do: tasks that wait, and tasks that are claimed or running."""

    name: str
    queued: int
    running: int

    @property
    def demand(self) -> int:
        """How many tasks it could run at once."""
        return self.queued + self.running


def maximum(entries: Mapping[str, int], now: datetime) -> int | None:
    """Return how many tasks may run at a local time, or None when there is no entry. Raises ValueError for a key that
    is no weekday and time.

    An entry holds until the next one, past midnight and past the end of the week. An entry for one day replaces the
    daily entry of the same time. One that says the same as that daily entry, as ``1 07:00`` above, ends an exception:
    daily entries between it and the entry for one day before it do not count, so 15 holds for the whole weekend.
    """
    daily: dict[int, int] = {}
    single: dict[int, int] = {}
    for key, value in entries.items():
        match = KEY.fullmatch(key)
        if match is None:
            raise ValueError(f"{key!r} is not a weekday (0 to 6, or *) and a time, as in '5 19:00'")
        minute = int(match[2]) * 60 + int(match[3])
        if match[1] == "*":
            daily[minute] = value
        else:
            single[int(match[1]) * _DAY + minute] = value
    week = {day * _DAY + minute: value for day in range(7) for minute, value in daily.items()} | single
    for start, end in _exceptions(daily, single):
        length = (end - start) % (7 * _DAY)
        week = {at: n for at, n in week.items() if at in single or not 0 < (at - start) % (7 * _DAY) < length}
    if not week:
        return None
    at_now = now.isoweekday() % 7 * _DAY + now.hour * 60 + now.minute
    return week[max((at for at in week if at <= at_now), default=max(week))]


def _exceptions(daily: Mapping[int, int], single: Mapping[int, int]) -> list[tuple[int, int]]:
    """Return the begin and the end of each exception, in minutes of the week."""
    times = sorted(single)
    ends = {at for at in times if daily.get(at % _DAY) == single[at]}
    return [
        (times[position - 1], at)  # the last of the week comes before the first
        for position, at in enumerate(times)
        if at in ends and times[position - 1] not in ends
    ]


def limits(groups: Sequence[Sequence[Load]], most: int) -> dict[str, int]:
    """Return the limit of each queue, by name. Together they are at most ``most``, and exactly that unless
    there is no queue or more runs already.

    Groups get what they need in the order of urgency, a group's queues equally. What runs is not stopped:
    where a queue runs more than its limit, others start that many fewer, the least urgent first. What nobody
    needs is spread over all queues, so that a new task starts at once. ``groups`` must name each queue
    once."""
    urgent_first = [*groups[1:], *groups[:1]]
    threads: dict[str, int] = {}
    left = most
    for group in urgent_first:
        shares = _spread({load.name: load.demand for load in group}, left)
        left -= sum(shares.values())
        threads |= shares
    loads = [load for group in urgent_first for load in group]
    excess = sum(max(0, load.running - threads[load.name]) for load in loads)
    if not excess:
        spare = _spread({load.name: left for load in loads}, left)
        return {name: share + spare[name] for name, share in threads.items()}
    for load in reversed(loads):
        taken = min(excess, max(0, threads[load.name] - load.running))
        threads[load.name] -= taken
        excess -= taken
    return threads


def _spread(demands: Mapping[str, int], slots: int) -> dict[str, int]:
    """Return how many of the slots each gets: equally, and none more than it demands; where that leaves a remainder,
    the first get one more each."""
    shares = dict.fromkeys(demands, 0)
    slots = max(0, min(slots, sum(demands.values())))
    while slots:
        hungry = [name for name, demand in demands.items() if shares[name] < demand]
        each = slots // len(hungry)
        for name in hungry if each else hungry[:slots]:
            share = min(max(each, 1), demands[name] - shares[name])
            shares[name] += share
            slots -= share
    return shares
