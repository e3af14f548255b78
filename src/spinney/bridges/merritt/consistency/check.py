"""What is wrong in the queue, by the rules of the test mode of Merritt's node dump, and some of the same kind.

What this library writes is whole or not there. Merritt's own libraries write node after node, and a writer that dies
between two leaves lists that point to nothing, jobs that no list has, and jobs that two lists have.
"""

import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeVar

from kazoo.client import KazooClient

from spinney.bridges.merritt import codec, items, job_nodes, layout
from spinney.bridges.merritt.consistency.snapshot import Snapshot, read
from spinney.bridges.merritt.errors import MerrittError
from spinney.bridges.merritt.states import AccessState, BatchState, JobState

LOCK_ALERT_S: Final = 120.0
"""A lock that is held for longer than this is reported, in seconds."""
FAIL_S: Final = 3600.0
"""Up to this age of its node, a finding may be work in progress of another library."""

_KNOWN: Final = re.compile(
    r"/(batch-uuids(/[^/]+)?|batches(/bid\d+(/(lock|submission|status|status-report|states(/batch-\w+(/jid\d+)?)?))?)?"
    r"|jobs(/(jid\d+(/(bid|configuration|status|priority|space_needed|identifiers|metadata|inventory|store|lock))?"
    r"|states(/\w+(/\d\d-jid\d+)?)?))?|access(/(small|large)(/qid\d+(/(token|status|lock))?)?)?"
    r"|locks(/(queue|storage|inventory|collections|localid)(/[^/]+)?)?)"
)
_POINTER: Final = re.compile(rf"{layout.JOB_STATES}/[^/]+/\d\d-(jid\d+)")
_BATCH_POINTER: Final = re.compile(rf"({layout.BATCHES}/bid\d+)/states/[^/]+/(jid\d+)")
_LOCK: Final = re.compile(
    r"/(batches/bid\d+|jobs/jid\d+|access/(small|large)/qid\d+)/lock|/locks/(storage|inventory|localid)/[^/]+"
)
_State = TypeVar("_State", bound=StrEnum)
_ITEM: Final = re.compile(r"/batches/bid\d+|/jobs/jid\d+|/access/(?:small|large)/qid\d+")


class Kind(StrEnum):
    """What kind of fault a finding is: a pointer to nothing, a second pointer, a node that is missing, a lock
    that is held for long, content that cannot be read, a node that the layout does not have, and a node that
    is too large."""

    ORPHAN = "orphan"
    DUPLICATE = "duplicate"
    MISSING = "missing"
    OLD_LOCK = "old lock"
    INVALID = "invalid"
    UNKNOWN = "unknown"
    LARGE = "large"


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """What would mend a finding, as one transaction."""

    delete: tuple[str, ...] = ()
    """Nodes to delete, with all that is below them."""
    create: tuple[tuple[str, bytes], ...] = ()
    """Nodes to create, with their data, each after its parent."""
    same: tuple[tuple[str, int], ...] = ()
    """Nodes that must still have this version."""
    absent: tuple[str, ...] = ()
    """Nodes that must still be missing."""
    unlocked: tuple[str, ...] = ()
    """Items that nobody may be working at."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a check found wrong in the queue's tree, with what would mend it."""

    kind: Kind
    path: str
    """The node that is wrong, or that lacks another."""
    message: str
    severity: str
    """``WARN`` where another client may just be at it, else ``FAIL``."""
    remedy: Remedy | None = None
    """What would repair it; None where an operator must decide."""


def findings(client: KazooClient, clock: Callable[[], float] = time.time) -> list[Finding]:
    """Return what is wrong. The queue is read twice, since others write while it is read: what two readings
    in a row do not both show was a change in progress, and is left out. ``clock``: seconds since 1970."""
    first = check(read(client), clock())
    if not first:
        return []
    second = {(finding.path, finding.message): finding for finding in check(read(client), clock())}
    return [second[key] for finding in first if (key := (finding.path, finding.message)) in second]


def check(nodes: Snapshot, now_s: float) -> list[Finding]:
    """Return what is wrong in nodes that were read, rule by rule. ``now_s``: the time now, in seconds since
    1970."""
    return [finding for rule in _RULES for finding in rule(nodes, now_s)]


def _severity(nodes: Snapshot, path: str, now_s: float) -> str:
    """Return how grave a finding about a node is: ``WARN`` while the node is younger than ``FAIL_S``."""
    return "WARN" if now_s - nodes[path].created_s < FAIL_S else "FAIL"


def _uuids(nodes: Snapshot, now_s: float) -> Iterator[Finding]:
    """Find uuids that point to no batch."""
    for name in nodes[layout.BATCH_UUIDS].children if layout.BATCH_UUIDS in nodes else ():
        path = f"{layout.BATCH_UUIDS}/{name}"
        batch = f"{layout.BATCHES}/{codec.read_text(nodes[path].data)}"
        if batch not in nodes:
            remedy = Remedy(delete=(path,), same=((path, nodes[path].version),), absent=(batch,))
            message = f"It names {batch}, which is missing."
            yield Finding(Kind.ORPHAN, path, message, _severity(nodes, path, now_s), remedy)


def _batches(nodes: Snapshot, now_s: float) -> Iterator[Finding]:
    """Find batches that lack a part or the node of their uuid, that are Completed with failed jobs, or that
    were taken without a job."""
    for path in _items(nodes, layout.BATCHES):
        severity = _severity(nodes, path, now_s)
        submission, status, states = (f"{path}/{name}" for name in ("submission", "status", "states"))
        if submission not in nodes:
            is_used = status in nodes or states in nodes
            remedy = None if is_used else Remedy(delete=(path,), unlocked=(path,))
            yield Finding(Kind.MISSING, path, f"{submission} is missing.", severity, remedy)
        elif status not in nodes:
            data = codec.object_bytes(status, items.status_fields({}, BatchState.PENDING))
            finish = Remedy(create=((status, data),), absent=(states,), unlocked=(path,))
            remedy = None if states in nodes else finish
            yield Finding(Kind.MISSING, path, f"{status} is missing.", severity, remedy)
        uuid = str(_fields(nodes, submission).get("batchID") or "")
        if uuid and f"{layout.BATCH_UUIDS}/{uuid}" not in nodes:
            pointer = (f"{layout.BATCH_UUIDS}/{uuid}", layout.name(path).encode())
            create = Remedy(create=(pointer,), same=((submission, nodes[submission].version),))
            remedy = create if layout.is_name(uuid) else None
            yield Finding(Kind.MISSING, submission, f"{pointer[0]} is missing.", severity, remedy)
        failed = f"{states}/batch-failed"
        is_completed = _state(nodes, path, BatchState) is BatchState.COMPLETED
        if is_completed and failed in nodes and nodes[failed].children:
            message = "Jobs of it have failed, but it is Completed: requeue them, and tell its depositor."
            yield Finding(Kind.INVALID, path, message, severity)
        if states in nodes and not nodes[states].children:
            # Without ``states`` a batch is pending, so that a consumer takes it again.
            remedy = Remedy(delete=(states,), unlocked=(path,))
            message = "It has no children: a consumer took the batch and created no job."
            yield Finding(Kind.MISSING, states, message, _severity(nodes, states, now_s), remedy)


def _jobs(nodes: Snapshot, now_s: float) -> Iterator[Finding]:
    """Find jobs that lack a part or their batch, and pointers that are missing, wrong or lead to no job."""
    lists = _lists(nodes)
    for path in _items(nodes, layout.JOBS):
        severity = _severity(nodes, path, now_s)
        pointers = lists.pop(layout.name(path), [])
        state = _state(nodes, path, JobState)
        parts = (f"{path}/{name}" for name in ("bid", "configuration", "status"))
        missing = [part for part in parts if part not in nodes]
        for each in missing:
            # The status is written after all parts, so a job without it was never begun.
            gone = Remedy(delete=(*pointers, path), absent=(f"{path}/status",), unlocked=(path,))
            remedy = gone if each.endswith("/status") else None
            yield Finding(Kind.MISSING, path, f"{each} is missing.", severity, remedy)
        if missing or state is None:
            continue
        bid = codec.read_text(nodes[f"{path}/bid"].data)
        if f"{layout.BATCHES}/{bid}" not in nodes:
            message = f"{layout.BATCHES}/{bid} is missing, to which it belongs."
            yield Finding(Kind.ORPHAN, path, message, severity)
            continue
        expected = (
            layout.job_pointer(state, _priority(nodes, path), layout.name(path)),
            layout.batch_pointer(bid, state, layout.name(path)),
        )
        same = ((f"{path}/status", nodes[f"{path}/status"].version),)
        for pointer in (each for each in expected if each not in nodes):
            create = tuple((each, b"") for each in _missing_lists(nodes, pointer))
            remedy = Remedy(create=(*create, (pointer, b"")), same=same, unlocked=(path,))
            yield Finding(Kind.MISSING, path, f"{pointer} is missing.", severity, remedy)
        for pointer in (each for each in pointers if each not in expected):
            remedy = Remedy(delete=(pointer,), same=same, unlocked=(path,))
            message = f"The job is {state} with priority {_priority(nodes, path)} and must not be here."
            yield Finding(Kind.DUPLICATE, pointer, message, severity, remedy)
    for job_id, pointers in lists.items():
        for pointer in pointers:
            job = f"{layout.JOBS}/{job_id}"
            remedy = Remedy(delete=(pointer,), absent=(job,))
            message = f"It points to {job}, which is missing."
            yield Finding(Kind.ORPHAN, pointer, message, _severity(nodes, pointer, now_s), remedy)


def _locks(nodes: Snapshot, now_s: float) -> Iterator[Finding]:
    """Find locks of no session, and those held for long."""
    for path in filter(_LOCK.fullmatch, nodes):
        if b'"owner":"mirror:' in nodes[path].data:
            continue  # what another system shows here for people is locked as long as it is open
        age_s = now_s - nodes[path].created_s
        remedy = Remedy(delete=(path,), same=((path, nodes[path].version),))
        if not nodes[path].session:
            message = "It belongs to no session, so it never ends by itself."
            yield Finding(Kind.OLD_LOCK, path, message, "FAIL", remedy)
        elif age_s >= LOCK_ALERT_S:
            message = f"It is held for more than {LOCK_ALERT_S:g} s by session 0x{nodes[path].session:x}."
            yield Finding(Kind.OLD_LOCK, path, message, "FAIL", remedy)


def _unreadable(nodes: Snapshot, now_s: float) -> Iterator[Finding]:
    """Find nodes that the layout does not have, that cannot be read, or that are too large."""
    kinds = {"batches": BatchState, "jobs": JobState, "access": AccessState}
    for path in nodes:
        if not _KNOWN.fullmatch(path):
            yield Finding(Kind.UNKNOWN, path, "The layout has no such node.", _severity(nodes, path, now_s))
        elif _ITEM.fullmatch(path):
            yield from _unreadable_parts(nodes, path, kinds[path.split("/")[1]], now_s)
        if (size := len(nodes[path].data)) > codec.LARGEST:
            message = (
                f"It has {size} bytes, and a node should have {codec.LARGEST} at most: a file with a pointer."
            )
            yield Finding(Kind.LARGE, path, message, "WARN")


def _unreadable_parts(nodes: Snapshot, path: str, kind: type[StrEnum], now_s: float) -> Iterator[Finding]:
    severity = _severity(nodes, path, now_s)
    for name in nodes[path].children:
        part = f"{path}/{name}"
        try:
            if name in ("priority", "space_needed"):
                codec.read_number(part, nodes[part].data)
            elif name not in ("bid", "lock", "states"):
                codec.read_object(part, nodes[part].data)
        except MerrittError as error:
            yield Finding(Kind.INVALID, part, str(error), severity)
    if path.startswith(f"{layout.ACCESS}/") and f"{path}/status" not in nodes:
        yield Finding(Kind.MISSING, path, f"{path}/status is missing.", severity)
    if f"{path}/status" in nodes and _state(nodes, path, kind) is None:
        yield Finding(Kind.INVALID, f"{path}/status", "It has no status of this layout.", severity)


_RULES: Final = (_uuids, _batches, _jobs, _locks, _unreadable)


def _items(nodes: Snapshot, parent: str) -> list[str]:
    """Return the paths of the items right below a node."""
    return [path for path in nodes if layout.parent(path) == parent and _ITEM.fullmatch(path)]


def _lists(nodes: Snapshot) -> dict[str, list[str]]:
    """Return the pointers to each job, by its id: in the states and in the batches."""
    lists: defaultdict[str, list[str]] = defaultdict(list)
    for path in nodes:
        if pointer := _POINTER.fullmatch(path):
            lists[pointer[1]].append(path)
        elif pointer := _BATCH_POINTER.fullmatch(path):
            lists[pointer[2]].append(path)
    return lists


def _missing_lists(nodes: Snapshot, pointer: str) -> list[str]:
    """Return the nodes above a pointer that are missing, from the top."""
    above = layout.parent(pointer)
    return [*_missing_lists(nodes, above), above] if above not in nodes else []


def _fields(nodes: Snapshot, path: str) -> dict[str, object]:
    """Return the fields of a node; none where it is missing or cannot be read, which another rule finds."""
    try:
        return codec.read_object(path, nodes[path].data) if path in nodes else {}
    except MerrittError:
        return {}


def _state(nodes: Snapshot, path: str, kind: type[_State]) -> _State | None:
    try:
        return kind(str(_fields(nodes, f"{path}/status").get("status")))
    except ValueError:
        return None


def _priority(nodes: Snapshot, path: str) -> int:
    try:
        return codec.read_number(path, nodes[f"{path}/priority"].data)
    except (KeyError, MerrittError):
        return job_nodes.DEFAULT_PRIORITY
