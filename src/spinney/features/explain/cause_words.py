"""The words for each cause for which a job is not running, and the command that would change it.

There is one function for each cause, from the job's id and the facts to a sentence without its final stop,
and a command or None. A function must not assume more facts than it needs: those that are missing were not
for the caller (``service`` removes them), and the sentence then does without them.
"""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from spinney.features.explain.explanation import COUNTED, JOBS, NAMED, Cause
from spinney.features.explain.node_words import (
    NODE_WORDS,
    START_NODE,
    Facts,
    Words,
    few,
    no_sign_of_life,
    taken_back,
)
from spinney.model.values.texts import counted

_OWNED = {
    "kept": "job {owner} keeps the lock {lock!r} until it settles",
    "reserved": "job {owner} has been woken for the lock {lock!r}",
}
"""The sentences for owners of a lock that do not have it just now while they run."""


Pieces = Sequence[tuple[str, int | None]]
"""A sentence in pieces: text, and the id of the job that is named behind it; None behind the last."""


def words(cause: Cause) -> tuple[Pieces, str | None]:
    """Return the sentence for a cause, and the command that would change it (None: there is none)."""
    facts = {name: _marked(name, value) for name, value in cause.facts.items()}
    sentence, command = _WORDS[cause.cause](cause.job_id, facts)
    if "superseded_by" in facts:
        above = "a job above it" if facts["superseded_by"] is None else f"job {facts['superseded_by']}"
        sentence = f"it no longer counts, since {above} was set to run again without it; {sentence}"
    *pieces, rest = re.split(f"{_MARK}([0-9]+){_MARK}", sentence)
    named = [(text, int(number)) for text, number in zip(pieces[::2], pieces[1::2], strict=True)]
    return [*named, (rest, None)], None if command is None else command.replace(_MARK, "")


# --- the jobs that a sentence names -------------------------------------------------------------

_MARK = "\ue000"
"""Stands before and behind the id of a job in a sentence: a character of Unicode's private use, which means nothing."""


class _Named(int):
    """The id of a job, which a sentence has between marks, so that pages can make a link of it: nothing else
    distinguishes it from other numbers."""

    def __format__(self, spec: str) -> str:
        return f"{_MARK}{int(self)}{_MARK}"


def _marked(name: str, value: Any) -> Any:
    """Return a fact with each job id in it as a ``_Named``. Marks in texts of others, such as a failure's message, are
    removed."""
    if name in JOBS and value is not None:
        return _Named(value)
    if name == "needs":
        return [_Named(need) for need in value]
    return value.replace(_MARK, "") if isinstance(value, str) else value


# --- settled, and at work -----------------------------------------------------------------------


def _settled(job_id: int, facts: Facts) -> Words:
    """The job has settled: how, by whom or why, and which command would run it again."""
    state = facts["state"]
    if state == "completed":
        return "it has completed", f"spinney rerun {job_id}"
    if state == "deleted":
        return "it is deleted", None
    if state == "cancelled" and (facts["reason"] or "").startswith("cancelled"):
        sentence = f"it was {facts['reason']}"  # which says who cancelled it
    else:
        sentence = ("it failed" if state == "failed" else f"it was {state}") + _because_of_others(facts)
    command = next((f"spinney {verb} {facts[verb]}" for verb in ("retry", "explain") if verb in facts), None)
    return sentence, command


def _running(job_id: int, facts: Facts) -> Words:
    """A node or an external worker has the job."""
    if "external_worker" in facts:
        return f"external worker {facts['external_worker']} has it", None
    node, slot = facts["node"], facts["slot"]
    if facts["begun"]:
        return f"it runs on node {node}, slot {slot}", None
    if "trouble" in facts:
        return f"node {node} has it in slot {slot}, but is degraded: {facts['trouble']}", "spinney nodes"
    return f"node {node} has it in slot {slot}", None


def _claimed(job_id: int, facts: Facts) -> Words:
    """The node has the job, but other jobs come before it in the same slot."""
    ahead = (
        f"{counted(facts['ahead'], 'job')} that it runs first" if "ahead" in facts else "what it runs first"
    )
    return f"node {facts['node']} has it in slot {facts['slot']}, behind {ahead}", None


def _recovering(job_id: int, facts: Facts) -> Words:
    """The node or external worker that had the job has left or was declared dead, and its lease is about to
    be taken back."""
    worker = facts.get("external_worker")
    owner = f"node {facts['node']}" if worker is None else f"external worker {worker}"
    return f"{owner}, which had it, has ended; it is being taken back", None


def _cancelling(job_id: int, facts: Facts) -> Words:
    """The job, or the tree that it belongs to, is to be cancelled, and is not yet."""
    if "external_worker" in facts:
        return f"external worker {facts['external_worker']} has it, and is being told to cancel it", None
    if "node" in facts:
        return f"it runs on node {facts['node']} and is being cancelled", None
    return f"it is being {facts['reason']}", f"spinney tree {facts['tree']}" if "tree" in facts else None


# --- held, or waiting for a time ----------------------------------------------------------------


def _hold(job_id: int, facts: Facts) -> Words:
    """Holds keep the job. The command releases all of them."""
    more = f", and {len(facts['holds']) - 1} more" if len(facts["holds"]) > 1 else ""
    return (f"{facts['hold']}{more}" if "hold" in facts else "a hold keeps it"), _release(facts["holds"])


def _released(job_id: int, facts: Facts) -> Words:
    """The job is still marked as held, but no hold covers it any more: the next sweep moves it on."""
    if "hold" in facts:
        sentence = f"{facts['hold']} has come to its end; it goes on with the next sweep"
    else:
        sentence = "no hold covers it any more; it goes on with the next sweep"
    return sentence, _release(facts["holds"]) if "holds" in facts else f"spinney release {job_id}"


def _own_hold(job_id: int, facts: Facts) -> Words:
    """The job is held by its own stage, not by a hold of an operator."""
    return f"it is held: {facts['reason'] or 'by its own stage'}", f"spinney release {job_id}"


def _vanished_stage(job_id: int, facts: Facts) -> Words:
    """The type has lost the next stage of the job: with a ``reason`` the job is held for it already, else it
    will be."""
    if "reason" in facts:
        sentence, _ = _own_hold(job_id, facts)
        advice = (
            "start a node whose application has its next stage and release the job, or cancel it and retry it, which "
            "continues with the first stage of its type that has not passed"
        )
        return f"{sentence}; {advice}", START_NODE
    return (
        f"its next stage {facts['stage']!r} has vanished from job type {facts['type']!r}, and it is about to be "
        "held; start a node whose application has that stage, or cancel the job"
    ), START_NODE


def _scheduled(job_id: int, facts: Facts) -> Words:
    """The job waits for the time of its submission, or (``stage``) for the one to which its stage deferred
    it."""
    if "stage" not in facts:
        return _until("it is scheduled for a time still to come", job_id, facts)
    return _until(f"its stage {facts['stage']!r} put it off{_because(facts)}", job_id, facts)


def _retry(job_id: int, facts: Facts) -> Words:
    """The job waits for the time of its next attempt. ``attempt`` counts the failed ones."""
    failure = f"attempt {facts['attempt']} of stage {facts['stage']!r} failed and it waits before the next"
    return _until(failure + _because(facts), job_id, facts)


def _until(sentence: str, job_id: int, facts: Facts) -> Words:
    """Return the words for a job that waits for a time; a hold that lasts longer is named, since it keeps the job
    then."""
    if "holds" not in facts:
        return sentence, f"spinney run-now {job_id}"
    more = f" and {len(facts['holds']) - 1} more" if len(facts["holds"]) > 1 and "hold" in facts else ""
    return f"{sentence}; {facts.get('hold', 'a hold')}{more} will keep it then", _release(facts["holds"])


# --- waiting for jobs ---------------------------------------------------------------------------


def _needs(job_id: int, facts: Facts) -> Words:
    """The job needs others that have not completed. ``others``: some of them are not visible to the
    caller."""
    needs = facts["needs"]
    command = f"spinney explain {needs[0]}" if needs else None
    if facts.get("others"):
        others = (
            f"{', '.join(f'job {need}' for need in needs)} and others"
            if needs
            else "jobs that have not completed yet"
        )
        return f"it needs {others}", command
    if not needs:
        return "all jobs that it needs have settled; it goes on in a moment", None
    named = ", ".join(f"job {need} ({state})" for need, state in zip(needs, facts["states"], strict=False))
    return f"it needs {named}{' and more' if len(needs) > NAMED else ''}", command


def _children(job_id: int, facts: Facts) -> Words:
    """The job waits for its subjobs; ``tree`` instead of a count: they are being put in place."""
    if "tree" in facts:
        return "its subjobs are being put in place", f"spinney tree {facts['tree']}"
    if "first" not in facts:
        return "it waits for its subjobs", None
    children, first = facts["children"], facts["first"]
    command = f"spinney explain {first}"
    if children == 1:
        return f"it waits for its subjob {first} ({facts['state']})", command
    return f"it waits for {_at_most(children)} subjobs, the first of them {first} ({facts['state']})", command


def _serial(job_id: int, facts: Facts) -> Words:
    """Another job of the serial tree goes first: an earlier one (``before``), or a later one that runs already."""
    tree = f" {facts['tree']}" if "tree" in facts else ""
    if facts["earlier"]:
        if tree and "before" in facts:
            before = facts["before"]
            return f"job {before} comes before it in the serial tree{tree}", f"spinney explain {before}"
        return "an earlier job of its serial tree comes before it", None
    return f"a later job of its serial tree{tree} is still running", None


def _lock(job_id: int, facts: Facts) -> Words:
    """Another job has the lock, or too much of it. A lock of capacity 1 names its owner; one with a capacity
    (``amount`` among the facts) tells how much is used. While an owner lives, the command explains that one;
    ``unlock`` is offered only where the owner is gone."""
    name, quoted, owner = facts["lock"], shlex.quote(facts["lock"]), facts.get("owner")
    if "amount" not in facts:
        if facts["free"]:
            return f"the lock {name!r} came free and it is about to go on", None
        if owner is None:
            return f"another job has the lock {name!r}", None
        sentence = _OWNED.get(facts["owned"], "job {owner} has the lock {lock!r}").format(
            owner=owner, lock=name
        )
        return sentence, f"spinney unlock {quoted}" if facts["owner_gone"] else f"spinney explain {owner}"
    wants = f"it wants {facts['amount']:,} of the lock {name!r}"
    if facts["queued"]:
        before = facts.get("before")
        command = None if before is None else f"spinney explain {before}"
        return f"{wants}, and {'another job' if before is None else f'job {before}'} comes before it", command
    if facts["free"]:
        return f"{wants}, which has room for it by now; it is about to go on", None
    of_capacity = f"{wants}, which has a capacity of {facts['capacity']:,}"
    if "used" not in facts:
        return f"{of_capacity}: other jobs have taken too much of it", None
    if facts["owners"] == 1:
        owners = f"job {owner} has"
    else:
        owners = f"{facts['owners']:,} jobs, the first of them {owner}, have"
    return f"{of_capacity}: {owners} {facts['used']:,} of it", f"spinney lock {quoted}"


def _deadlock(job_id: int, facts: Facts) -> Words:
    """Jobs wait for each other's locks. The command cancels the newest job of the ring."""
    sentence = "jobs wait for each other, and none of them can go on"
    if "ring" not in facts:
        return sentence, None
    return f"{sentence}: {facts['chain']}", f"spinney cancel {max(facts['ring'])}"


# --- other jobs go first ------------------------------------------------------------------------


def _lane_asleep(job_id: int, facts: Facts) -> Words:
    """The stage sleeps for all jobs until a time, or until one job, the probe, has shown that it works
    again."""
    stage = f"stage {facts['stage']!r} of job type {facts['type']!r}"
    if facts["asleep"]:
        return f"{stage} was put to sleep by one of its jobs", None
    probe = facts.get("probe")
    if probe is None:
        return f"another job tries whether {stage} works again", None
    return f"job {probe} tries whether {stage} works again", f"spinney show {probe}"


def _queue_limit(job_id: int, facts: Facts) -> Words:
    """The queue has used all slots of its limit. A limit of 0 shuts it; the command then restores the
    declared limit. Slots of a silent node come free when its jobs are taken back."""
    queue, limit = facts["queue"], facts["limit"]
    if limit == 0:
        back = "1" if facts["declared"] == 0 else "declared"
        return f"queue {queue!r} is shut (its limit is 0)", f"spinney queue {queue} --limit {back}"
    part = f" ({facts['part']} of all)" if facts["part"] else ""
    used = ", ".join(f"{count} of type {type_!r}" for type_, count in facts.get("users", ()))
    sentence = f"queue {queue!r} is at its limit of {counted(limit, 'slot')}{part}" + (
        f", used by {used}" if used else ""
    )
    if "node" in facts:
        some = f"{facts['silent_slots']} of these slots" if "silent_slots" in facts else "some of these slots"
        back, command = taken_back(facts)
        return (
            f"{sentence}; node {facts['node']}, which has {some}, {no_sign_of_life(facts)}; {back}",
            command,
        )
    return sentence, f"spinney queue {queue} --limit {limit + 1}"


def _share(job_id: int, facts: Facts) -> Words:
    """The share of the job has all slots that one share may have in the queue."""
    slots = f"{facts['held']} of the {counted(facts['most'], 'slot')}"
    return f"its share holds {slots} that one share may hold in queue {facts['queue']!r}", None


def _slots(job_id: int, facts: Facts) -> Words:
    """Every node that may run the job is full."""
    ahead = facts.get("ahead")
    behind = f"; {_jobs_come(ahead)} before it" if ahead else ""
    of_nodes = f"of the nodes that may run it ({few(facts['nodes'])})"
    if facts["slots"] == 1:
        return f"the only slot {of_nodes} is taken{behind}", _sooner(job_id, facts)
    return f"all {facts['slots']} slots {of_nodes} are taken{behind}", _sooner(job_id, facts)


def _priority(job_id: int, facts: Facts) -> Words:
    """Slots are free, but jobs that come first will take them."""
    if "ahead" not in facts:
        return "more jobs come before it than there are free slots", _sooner(job_id, facts)
    ahead = _jobs_come(facts["ahead"])
    return f"{ahead} before it for {counted(facts['free'], 'free slot')}", _sooner(job_id, facts)


def _sooner(job_id: int, facts: Facts) -> str | None:
    """Return the command that gives the job the most urgent priority, where that would put it before
    others."""
    return f"spinney priority {job_id} --to 0" if facts["could_be_sooner"] else None


def _turn(job_id: int, facts: Facts) -> Words:
    """Slots are free, and it is not certain that others take all of them."""
    ahead = f" ({counted(facts['ahead'], 'job')} may come before it)" if "ahead" in facts else ""
    return f"slots are free, and its turn comes soon{ahead}", None


_WORDS: Mapping[str, Callable[[int, Facts], Words]] = {
    **NODE_WORDS,
    "settled": _settled,
    "running": _running,
    "claimed": _claimed,
    "recovering": _recovering,
    "cancelling": _cancelling,
    "hold": _hold,
    "released": _released,
    "own hold": _own_hold,
    "vanished stage": _vanished_stage,
    "scheduled": _scheduled,
    "retry": _retry,
    "needs": _needs,
    "children": _children,
    "serial": _serial,
    "lock": _lock,
    "deadlock": _deadlock,
    "lane asleep": _lane_asleep,
    "queue limit": _queue_limit,
    "share": _share,
    "slots": _slots,
    "priority": _priority,
    "turn": _turn,
    "next": lambda job_id, facts: ("nothing keeps it: it starts with the next claim", None),
    "accepted": lambda job_id, facts: ("it is accepted and will be put in its place in a moment", None),
}
"""The function for each cause. A cause without one would be an error, so every cause of the store is here."""


def _because_of_others(facts: Facts) -> str:
    """Return the reason of a failure: the subjobs that failed or the job that it needs, else its message."""
    if "child" in facts:
        if facts.get("bad_children", 1) == 1:
            return f": its subjob {facts['child']} {facts['ending']}"
        ended = "failed" if facts["all_failed"] else "did not complete"
        return (
            f": {_at_most(facts['bad_children'])} of its subjobs {ended}, the first of them {facts['child']}"
        )
    if "need" in facts:
        return f": job {facts['need']}, which it needs, {facts['ending']}"
    return _because(facts)


def _because(facts: Facts) -> str:
    return f": {facts['reason']}" if facts["reason"] else ""


def _release(holds: Sequence[int]) -> str:
    return "spinney release" + "".join(f" --hold {hold}" for hold in holds)


def _at_most(count: int) -> str:
    return f"{count:,}" if count < COUNTED else f"{COUNTED:,} or more"


def _jobs_come(count: int) -> str:
    return f"{_at_most(count)} {'job comes' if count == 1 else 'jobs come'}"
