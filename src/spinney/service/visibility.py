"""What somebody whose sight is limited is told of things that others have a part in.

Whether a job is out of sight is asked of the store once for all numbers that an answer names. A sentence that would
name one is said again without it, and without counts of what others have.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from spinney.model.access import AccessScope
from spinney.model.jobs import Filter, Job
from spinney.model.rights.operators import Explanation, LockInfo
from spinney.model.settings.holds import Hold, Scope
from spinney.model.states import State

if TYPE_CHECKING:
    from spinney.store.contract import Store

_NAMED = re.compile(r"\b(its subjob|job) (\d+)(?=(?:, which it needs,)? is )")
"""How the engine says because of which job another failed."""
_NOBODY = {"its subjob": "one of its subjobs", "job": "a job"}
_PAGE = 10_000
_UNTOLD = "a hold that is not within your limits"
_ABOUT_JOBS = frozenset({"explain", "retry", "rerun", "show", "tree"})
_COUNTED = frozenset({"before", "taken"})
"""Facts that count what others have."""


class Visibility:
    """What of one store lies within somebody's limits."""

    def __init__(self, store: "Store", within: AccessScope) -> None:
        self._store, self._within = store, within

    def seen(self, job_ids: Iterable[int]) -> set[int]:
        """Of these jobs those in sight."""
        asked = sorted(set(job_ids))
        found: set[int] = set()
        for start in range(0, len(asked), _PAGE):
            page = tuple(asked[start : start + _PAGE])
            found.update(self._store.bulk.find(Filter(ids=page, within=self._within), limit=_PAGE))
        return found

    def any_of(self, **named: Any) -> bool:
        """Whether a job that fits is in sight."""
        return self._store.bulk.count(Filter(within=self._within, **named), most=1) > 0

    # --- jobs -----------------------------------------------------------------------------

    def jobs(self, found: Sequence[Job]) -> list[Job]:
        """Those of them that are in sight, with what is said of them."""
        mine = [job for job in found if self._within.holds(job.collection, job.queue)]
        named = {int(n) for job in mine for _, n in _NAMED.findall(job.message or "")}
        seen = self.seen(named) if named else set[int]()
        return [self._job(job, seen) for job in mine]

    def _job(self, job: Job, seen: Collection[int]) -> Job:
        if job.waits_for == "hold":
            # Its message is a hold's, whose name may be that of others.
            return replace(job, message="; ".join(map(str, self.holds_on(job.id))) or _UNTOLD)
        if job.message is None:
            return job
        return replace(job, message=_without(job.message, seen))

    # --- holds ----------------------------------------------------------------------------

    def holds(self, found: Iterable[Hold]) -> list[Hold]:
        """Those that cover something in sight, or would."""
        return [shown for hold in found if (shown := self._hold(hold)) is not None]

    def holds_on(self, job_id: int) -> list[Hold]:
        """Those over a job in sight. One that bears the name of something else (a tree's top) goes without it."""
        found = self._store.holds.covering(job_id)
        return [self._hold(hold) or replace(hold, name="", reason=_UNTOLD) for hold in found]

    def _hold(self, hold: Hold) -> Hold | None:
        if not self._concerned(hold):
            return None
        # What a breaker says is a failure's message, and that may have been another's job.
        return replace(hold, reason="a circuit breaker stopped it") if hold.automatic else hold

    def _concerned(self, hold: Hold) -> bool:
        within = self._within
        if hold.scope is Scope.QUEUE:
            return within.queues is None or hold.name in within.queues
        if hold.scope is Scope.COLLECTION and within.collections is not None:
            return hold.name in within.collections
        if hold.scope is Scope.COLLECTION:
            return self.any_of(collection=hold.name)
        if hold.scope is Scope.SUBMITTER:
            return self.any_of(submitter=hold.name)
        if hold.scope in (Scope.TREE, Scope.JOB):
            return bool(self.seen([int(hold.name)]))
        return True

    # --- locks ----------------------------------------------------------------------------

    def locks(self, found: Sequence[LockInfo]) -> list[LockInfo]:
        """Without who has them, where that is out of sight: somebody has."""
        seen = self.seen(info.owner_id for info in found if info.owner_id is not None)
        return [
            info
            if info.owner_id is None or info.owner_id in seen
            else replace(info, owner_id=None, node=None, since_us=None)
            for info in found
        ]

    # --- explaining -----------------------------------------------------------------------

    def explanation(self, found: Explanation) -> Explanation:
        """Without what it says of others."""
        retold = _SAID.get(found.cause)
        said = found if retold is None else retold(self, found)
        facts = {name: value for name, value in said.facts.items() if name not in _COUNTED}
        return replace(said, facts=facts, command=self._command(said))

    def _command(self, found: Explanation) -> str | None:
        """Not one about a job that is out of sight."""
        words = (found.command or "").split()
        about_jobs = words[1:2] and words[1] in _ABOUT_JOBS
        others = {int(word) for word in words if about_jobs and word.isdigit()} - {found.job_id}
        return found.command if not others or self.seen(others) == others else None

    def _settled(self, found: Explanation) -> Explanation:
        """Because of which job it failed."""
        seen = self.seen({int(n) for _, n in _NAMED.findall(found.sentence)})
        return replace(found, sentence=_without(found.sentence, seen))

    def _under_hold(self, found: Explanation) -> Explanation:
        there = {hold.id: hold for hold in self.holds_on(found.job_id)}
        named = [hold for id_ in found.facts.get("holds", ()) if (hold := there.get(id_)) is not None]
        more = f", and {len(named) - 1} more" if len(named) > 1 else ""
        return replace(found, sentence=f"{named[0]}{more}" if named else "a hold keeps it")

    def _released(self, found: Explanation) -> Explanation:
        return replace(found, sentence="no hold covers it any more; it goes on with the next sweep")

    def _until(self, found: Explanation) -> Explanation:
        """It waits for a time, and perhaps a hold will keep it then."""
        if "holds" not in found.facts:
            return found
        return replace(found, sentence=f"{found.sentence.split('; hold ')[0]}; a hold will keep it then")

    def _needs(self, found: Explanation) -> Explanation:
        needs = list(found.facts.get("needs", ()))
        seen = self.seen(needs)
        if len(seen) == len(needs):
            return found
        mine = [need for need in needs if need in seen]
        others = (
            "jobs that have not completed yet" if not mine else f"job {', '.join(map(str, mine))} and others"
        )
        command = f"spinney explain {mine[0]}" if mine else None
        return replace(found, sentence=f"it needs {others}", command=command, facts={"needs": mine})

    def _children(self, found: Explanation) -> Explanation:
        first = found.facts.get("first")
        if first is None:
            return found
        open_ = tuple(
            set(State) - {State.COMPLETED, State.FAILED, State.CANCELLED, State.ORPHANED, State.DELETED}
        )
        which = Filter(parent_id=found.job_id, states=open_, superseded=False, within=self._within)
        if self._store.bulk.count(which, most=found.facts["children"]) == found.facts["children"]:
            return found
        return replace(found, sentence="it waits for its subjobs", command=None, facts={})

    def _serial(self, found: Explanation) -> Explanation:
        root = [int(n) for n in re.findall(r"serial tree (\d+)", found.sentence)]
        before = found.facts.get("before")
        named = [*root, *([] if before is None else [before])]
        if self.seen(named) == set(named):
            return found
        which = (
            "a later job of its serial tree is still running"
            if before is None
            else ("an earlier job of its serial tree comes before it")
        )
        return replace(found, sentence=which, command=None, facts={})

    def _lock(self, found: Explanation) -> Explanation:
        named = {found.facts[name] for name in ("owner", "before") if name in found.facts}
        if "used" not in found.facts and self.seen(named) == named:
            return found
        lock = found.facts["lock"]
        if "used" not in found.facts:
            return replace(
                found, sentence=f"another job has the lock {lock!r}", command=None, facts={"lock": lock}
            )
        amount, capacity = found.facts["amount"], found.facts["capacity"]
        facts = {"lock": lock, "amount": amount, "capacity": capacity}
        wants = f"it wants {amount:,} of the lock {lock!r}"
        if "before" in found.facts:
            return replace(
                found, sentence=f"{wants}, and another job comes before it", command=None, facts=facts
            )
        if found.command is None:  # there is room
            return replace(found, facts=facts)
        full = f"{wants}, and of its capacity of {capacity:,} others have too much"
        return replace(found, sentence=full, command=None, facts=facts)

    def _asleep(self, found: Explanation) -> Explanation:
        probe = found.facts.get("probe")
        if probe is None or self.seen([probe]):
            return found
        sentence = found.sentence.replace(f"job {probe} tries", "another job tries", 1)
        return replace(found, sentence=sentence, command=None, facts={})

    def _claimed(self, found: Explanation) -> Explanation:
        node, slot = found.facts["node"], found.facts["slot"]
        return replace(found, sentence=f"node {node} has it in slot {slot}, behind what it runs first")

    def _limited(self, found: Explanation) -> Explanation:
        return replace(found, sentence=found.sentence.split(", used by ")[0])

    def _slots(self, found: Explanation) -> Explanation:
        told = found.sentence.rsplit("; ", 1)[0] if found.facts.get("before") else found.sentence
        return replace(found, sentence=told)

    def _priority(self, found: Explanation) -> Explanation:
        return replace(found, sentence="more jobs come before it than there are free slots")

    def _turn(self, found: Explanation) -> Explanation:
        return replace(found, sentence="slots are free, and its turn comes soon")

    def _drained(self, found: Explanation) -> Explanation:
        """Who drained it, and why, is the operators'."""
        nodes = ", ".join(found.facts.get("nodes", ()))
        return replace(found, sentence=f"the nodes that may run it are drained: {nodes}", command=None)


def _without(text: str, seen: Collection[int]) -> str:
    """A text of the engine's without jobs that are out of sight."""
    return _NAMED.sub(lambda m: m.group(0) if int(m.group(2)) in seen else _NOBODY[m.group(1)], text)


_SAID: Mapping[str, Callable[[Visibility, Explanation], Explanation]] = {
    "settled": Visibility._settled,
    "hold": Visibility._under_hold,
    "released": Visibility._released,
    "scheduled": Visibility._until,
    "retry": Visibility._until,
    "needs": Visibility._needs,
    "children": Visibility._children,
    "serial": Visibility._serial,
    "lock": Visibility._lock,
    "lane asleep": Visibility._asleep,
    "claimed": Visibility._claimed,
    "queue limit": Visibility._limited,
    "slots": Visibility._slots,
    "priority": Visibility._priority,
    "turn": Visibility._turn,
    "drained": Visibility._drained,
}
