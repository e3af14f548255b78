"""What a limited caller is shown of holds, locks and explanations that also concern jobs of others.

The store is queried once for all job ids that an answer names. A sentence that would name a job that is not visible is
reworded without it, and without counts of what others have."""

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
"""How the engine words because of which job another failed."""
_NOBODY = {"its subjob": "one of its subjobs", "job": "a job"}
_PAGE = 10_000
_HIDDEN_HOLD = "a hold that is not within your limits"
_ABOUT_JOBS = frozenset({"explain", "retry", "rerun", "show", "tree"})
_COUNTED = frozenset({"before", "taken"})
"""Facts that count jobs of others."""


class Visibility:
    """What a caller with limits may see of one store."""

    def __init__(self, store: "Store", within: AccessScope) -> None:
        self._store, self._within = store, within

    def seen(self, job_ids: Iterable[int]) -> set[int]:
        """Return which of these jobs are visible."""
        wanted = sorted(set(job_ids))
        visible: set[int] = set()
        for start in range(0, len(wanted), _PAGE):
            page = tuple(wanted[start : start + _PAGE])
            visible.update(self._store.bulk.find(Filter(ids=page, within=self._within), limit=_PAGE))
        return visible

    def any_of(self, **named: Any) -> bool:
        """Return whether a job that matches is visible."""
        return self._store.bulk.count(Filter(within=self._within, **named), most=1) > 0

    # --- jobs -----------------------------------------------------------------------------

    def jobs(self, jobs: Sequence[Job]) -> list[Job]:
        """Return the visible ones of these jobs, with their messages reworded."""
        visible = [job for job in jobs if self._within.holds(job.collection, job.queue)]
        named = {int(n) for job in visible for _, n in _NAMED.findall(job.message or "")}
        seen = self.seen(named) if named else set[int]()
        return [self._job(job, seen) for job in visible]

    def _job(self, job: Job, seen: Collection[int]) -> Job:
        if job.waits_for == "hold":
            # Its message is a hold's, whose name may be that of others.
            return replace(job, message="; ".join(map(str, self.holds_on(job.id))) or _HIDDEN_HOLD)
        if job.message is None:
            return job
        return replace(job, message=_without(job.message, seen))

    # --- holds ----------------------------------------------------------------------------

    def holds(self, holds: Iterable[Hold]) -> list[Hold]:
        """Return the holds that cover, or would cover, something visible."""
        return [shown for hold in holds if (shown := self._hold(hold)) is not None]

    def holds_on(self, job_id: int) -> list[Hold]:
        """Return the holds over a visible job. A hold on something that is not visible (a tree's top) loses its name
        and its reason."""
        holds = self._store.holds.covering(job_id)
        return [self._hold(hold) or replace(hold, name="", reason=_HIDDEN_HOLD) for hold in holds]

    def _hold(self, hold: Hold) -> Hold | None:
        if not self._concerned(hold):
            return None
        # The reason of a circuit breaker is a failure's message, and that may have been another's job.
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

    def locks(self, locks: Sequence[LockInfo]) -> list[LockInfo]:
        """Return the locks, without owners that are not visible."""
        seen = self.seen(info.owner_id for info in locks if info.owner_id is not None)
        return [
            info
            if info.owner_id is None or info.owner_id in seen
            else replace(info, owner_id=None, node=None, since_us=None)
            for info in locks
        ]

    # --- explaining -----------------------------------------------------------------------

    def explanation(self, explanation: Explanation) -> Explanation:
        """Return the explanation, without what concerns others."""
        reword = _REWORD.get(explanation.cause)
        reworded = explanation if reword is None else reword(self, explanation)
        facts = {name: value for name, value in reworded.facts.items() if name not in _COUNTED}
        return replace(reworded, facts=facts, command=self._command(reworded))

    def _command(self, explanation: Explanation) -> str | None:
        """Return the command that the explanation suggests, unless it is about a job that is not visible."""
        words = (explanation.command or "").split()
        about_jobs = words[1:2] and words[1] in _ABOUT_JOBS
        others = {int(word) for word in words if about_jobs and word.isdigit()} - {explanation.job_id}
        return explanation.command if not others or self.seen(others) == others else None

    def _settled(self, explanation: Explanation) -> Explanation:
        """Reword because of which job it failed."""
        seen = self.seen({int(n) for _, n in _NAMED.findall(explanation.sentence)})
        return replace(explanation, sentence=_without(explanation.sentence, seen))

    def _under_hold(self, explanation: Explanation) -> Explanation:
        holds = {hold.id: hold for hold in self.holds_on(explanation.job_id)}
        named = [hold for id_ in explanation.facts.get("holds", ()) if (hold := holds.get(id_)) is not None]
        more = f", and {len(named) - 1} more" if len(named) > 1 else ""
        return replace(explanation, sentence=f"{named[0]}{more}" if named else "a hold keeps it")

    def _released(self, explanation: Explanation) -> Explanation:
        return replace(explanation, sentence="no hold covers it any more; it goes on with the next sweep")

    def _until(self, explanation: Explanation) -> Explanation:
        """Reword the hold that will keep the job when its time comes."""
        if "holds" not in explanation.facts:
            return explanation
        return replace(
            explanation, sentence=f"{explanation.sentence.split('; hold ')[0]}; a hold will keep it then"
        )

    def _needs(self, explanation: Explanation) -> Explanation:
        needs = list(explanation.facts.get("needs", ()))
        seen = self.seen(needs)
        if len(seen) == len(needs):
            return explanation
        visible = [need for need in needs if need in seen]
        others = (
            "jobs that have not completed yet"
            if not visible
            else f"job {', '.join(map(str, visible))} and others"
        )
        command = f"spinney explain {visible[0]}" if visible else None
        return replace(explanation, sentence=f"it needs {others}", command=command, facts={"needs": visible})

    def _children(self, explanation: Explanation) -> Explanation:
        first = explanation.facts.get("first")
        if first is None:
            return explanation
        open_ = tuple(
            set(State) - {State.COMPLETED, State.FAILED, State.CANCELLED, State.ORPHANED, State.DELETED}
        )
        which = Filter(parent_id=explanation.job_id, states=open_, superseded=False, within=self._within)
        if self._store.bulk.count(which, most=explanation.facts["children"]) == explanation.facts["children"]:
            return explanation
        return replace(explanation, sentence="it waits for its subjobs", command=None, facts={})

    def _serial(self, explanation: Explanation) -> Explanation:
        root = [int(n) for n in re.findall(r"serial tree (\d+)", explanation.sentence)]
        before = explanation.facts.get("before")
        named = [*root, *([] if before is None else [before])]
        if self.seen(named) == set(named):
            return explanation
        which = (
            "a later job of its serial tree is still running"
            if before is None
            else ("an earlier job of its serial tree comes before it")
        )
        return replace(explanation, sentence=which, command=None, facts={})

    def _lock(self, explanation: Explanation) -> Explanation:
        named = {explanation.facts[name] for name in ("owner", "before") if name in explanation.facts}
        if "used" not in explanation.facts and self.seen(named) == named:
            return explanation
        lock = explanation.facts["lock"]
        if "used" not in explanation.facts:
            return replace(
                explanation, sentence=f"another job has the lock {lock!r}", command=None, facts={"lock": lock}
            )
        amount, capacity = explanation.facts["amount"], explanation.facts["capacity"]
        facts = {"lock": lock, "amount": amount, "capacity": capacity}
        wants = f"it wants {amount:,} of the lock {lock!r}"
        if "before" in explanation.facts:
            return replace(
                explanation, sentence=f"{wants}, and another job comes before it", command=None, facts=facts
            )
        if explanation.command is None:  # there is room
            return replace(explanation, facts=facts)
        full = f"{wants}, and of its capacity of {capacity:,} others have too much"
        return replace(explanation, sentence=full, command=None, facts=facts)

    def _asleep(self, explanation: Explanation) -> Explanation:
        probe = explanation.facts.get("probe")
        if probe is None or self.seen([probe]):
            return explanation
        sentence = explanation.sentence.replace(f"job {probe} tries", "another job tries", 1)
        return replace(explanation, sentence=sentence, command=None, facts={})

    def _claimed(self, explanation: Explanation) -> Explanation:
        node, slot = explanation.facts["node"], explanation.facts["slot"]
        return replace(explanation, sentence=f"node {node} has it in slot {slot}, behind what it runs first")

    def _limited(self, explanation: Explanation) -> Explanation:
        return replace(explanation, sentence=explanation.sentence.split(", used by ")[0])

    def _slots(self, explanation: Explanation) -> Explanation:
        sentence = (
            explanation.sentence.rsplit("; ", 1)[0]
            if explanation.facts.get("before")
            else explanation.sentence
        )
        return replace(explanation, sentence=sentence)

    def _priority(self, explanation: Explanation) -> Explanation:
        return replace(explanation, sentence="more jobs come before it than there are free slots")

    def _turn(self, explanation: Explanation) -> Explanation:
        return replace(explanation, sentence="slots are free, and its turn comes soon")

    def _drained(self, explanation: Explanation) -> Explanation:
        """Leave out who drained the nodes, and why: that is for operators."""
        nodes = ", ".join(explanation.facts.get("nodes", ()))
        return replace(explanation, sentence=f"the nodes that may run it are drained: {nodes}", command=None)


def _without(text: str, seen: Collection[int]) -> str:
    """Return a text of the engine without the ids of jobs that are not visible."""
    return _NAMED.sub(lambda m: m.group(0) if int(m.group(2)) in seen else _NOBODY[m.group(1)], text)


_REWORD: Mapping[str, Callable[[Visibility, Explanation], Explanation]] = {
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
