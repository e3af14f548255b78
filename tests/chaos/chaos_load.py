"""A load on two nodes while faults come, and what is known of it afterwards.

A ``Grove`` is a store, a folder root, the nodes on them and a submitter that goes on submitting whatever happens: it
remembers what was accepted, and of how much it was never told. Nodes that end are started again, as a service manager
would. In the end ``harvest`` waits until everything has settled, reads the history and hands it to the checker.
"""

import contextlib
import json
import random
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from chaos_app import NARROW, PRESSES, app
from chaos_notes import PLACE, Stretch, read
from checker import Blow, Cancel, Finding, History, Kept, Kind, Late, judge, recoveries
from node_fixtures import Cluster, Node, now_us

from spinney.model.errors import CommitUncertain, SpinneyError
from spinney.model.jobs import Attempt, Filter, Job, Submission
from spinney.model.states import SETTLED, State
from spinney.store.parts import Store
from spinney.store.sql import open_store
from waiting import until

T = TypeVar("T")
HERE = Path(__file__).parent
LEASE_S = 2.0
AGAIN_S = 0.2
"""After its end a node is started again as soon as this."""
SETTLE_S = 90.0
"""Longer than anything here needs to settle when the fault is over."""
_PAGE = 500
_KINDS = {
    name: Kind(stages=tuple(stage.name for stage in kind.spec.stages)) for name, kind in app.types.items()
}
KINDS = _KINDS | {
    "once": Kind(stages=("once",), ends=frozenset({State.COMPLETED, State.ORPHANED, State.FAILED}), once=True)
}
CAPACITIES = {"queue:narrow": NARROW} | {f"lock:press:{n}": 1 for n in range(PRESSES)}
_REFUSED = re.compile(r"refused late record job=(\d+) fence=(\d+)")
_GIVEN_UP = "late records are refused, because their leases are lost: "
_RECORD = re.compile(r"job=\d+ fence=\d+")
_TREE = {"children": 6, "seconds": 0.01}


@dataclass
class Grove:
    """See the module's docstring."""

    place: Path
    url: str | None = None
    lease_period_s: float = LEASE_S
    seed: int = 0
    serving: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The nodes that are to run, and how they are started. By name, unless two are to bear one."""

    def __post_init__(self) -> None:
        self.cluster = Cluster(self.place, self.url)
        self.draw = random.Random(self.seed)
        self.notes = self.place / "notes"
        self.notes.mkdir()
        self.logs = self.place / "logs"
        self.logs.mkdir()
        self.nodes: dict[str, Node] = {}
        self.accepted: list[int] = []
        self.children: dict[int, int] = {}
        self.needs: dict[int, Sequence[int]] = {}
        self.doubtful = 0
        self.blows: list[Blow] = []
        self.cancels: list[Cancel] = []
        self.thaws: dict[int, float] = {}
        self.restarts = 0
        self._ended_s: dict[str, float] = {}

    # --- nodes ----------------------------------------------------------------------------

    def start(self, name: str, **settings: Any) -> Node:
        """Start a node and wait until it has joined. It is started again whenever it ends, see ``tend``."""
        return self.begin(name, settings).joined()

    def begin(self, name: str, settings: dict[str, Any]) -> Node:
        """The same without waiting."""
        self.serving[name] = settings
        return self._start(name)

    def _start(self, name: str) -> Node:
        defaults = {"lease_period_s": self.lease_period_s, "beat_s": 0.1, "slots": 3, "drain_limit_s": 5.0}
        settings = {"name": name} | defaults | self.serving[name]
        environment = {PLACE: str(self.notes)} | settings.pop("env", {})
        self.nodes[name] = self.cluster.start(
            app="chaos_app:app", env=environment, log=self.logs / name, **settings
        )
        return self.nodes[name]

    def tend(self) -> None:
        """Start again what has ended, after a moment."""
        now_s = time.monotonic()
        for name in self.serving:
            if self.nodes[name].process.poll() is None:
                self._ended_s.pop(name, None)
            elif now_s - self._ended_s.setdefault(name, now_s) > AGAIN_S:
                del self._ended_s[name]
                self.restarts += 1
                self._start(name)

    def rest(self, seconds: float) -> None:
        """Let time pass, and tend the nodes."""
        give_up = time.monotonic() + seconds
        while (left := give_up - time.monotonic()) > 0:
            self.tend()
            time.sleep(min(left, 0.05))

    def blow(self, strike: Callable[[], object], *, lasts: Callable[[], object] | None = None) -> None:
        """Do this to it now; ``lasts`` returns when it is over."""
        at_s = time.monotonic()
        strike()
        over_s = at_s
        if lasts is not None:
            lasts()
            over_s = time.monotonic()
        self.blows.append(Blow(at_s=at_s, over_s=over_s))

    # --- work -----------------------------------------------------------------------------

    @contextlib.contextmanager
    def under_load(self, jobs: int) -> Iterator[None]:
        """Some jobs at once, and more as long as the block lasts: about as many as said are open then, so that there
        is always work and never long to wait for its end."""
        self.submit(self.some(20))
        stop = threading.Event()
        failed: list[BaseException] = []

        def feed() -> None:
            try:
                self._feed(stop, jobs)
            except BaseException as error:  # noqa: BLE001 - told in the test's thread
                failed.append(error)

        feeder = threading.Thread(target=feed)
        feeder.start()
        try:
            yield
        finally:
            stop.set()
            feeder.join()
        if failed:
            raise failed[0]

    def _feed(self, stop: threading.Event, jobs: int) -> None:
        store = open_store(self.cluster.url)
        try:
            while not stop.wait(0.05):
                with contextlib.suppress(SpinneyError):
                    if _open(store) < jobs:
                        self.submit(self.some(10), store)
        finally:
            store.close()

    def some(self, number: int) -> list[tuple[str, Mapping[str, Any]]]:
        """So many of each of the kinds, mixed; quick and less quick ones."""
        draw = self.draw
        histories: list[tuple[str, Mapping[str, Any]]] = []
        for _ in range(number):
            seconds = draw.choice([0.0, 0.0, 0.01, 0.05, 0.2])
            kind = draw.choice(
                ["plain"] * 4 + ["chain", "chain", "narrow", "pressed", "once", "threaded", "tree"]
            )
            more = {"tree": _TREE, "pressed": {"press": draw.randrange(PRESSES)}}.get(kind, {})
            histories.append((kind, {"seconds": seconds} | more))
        return histories

    def submit(
        self, rows: Sequence[tuple[str, Mapping[str, Any]]], store: Store | None = None, **options: Any
    ) -> list[int]:
        """Submit them in one call and remember what came of it. Raises what the store raises."""
        orders = [Submission(type=kind, params=[json.dumps(params)], **options) for kind, params in rows]
        try:
            ids = list((store or self.cluster.store).submit(orders, now_us=now_us()).ids)
        except CommitUncertain:
            self.doubtful += len(rows)
            raise
        self.accepted += ids
        self.needs |= dict.fromkeys(ids, options.get("needs", ()))
        self.children |= {
            job_id: params["children"]
            for job_id, (_, params) in zip(ids, rows, strict=True)
            if "children" in params
        }
        return ids

    # --- afterwards -----------------------------------------------------------------------

    def harvest(self, settle_s: float = SETTLE_S) -> "Harvest":
        """Wait until all has settled, stop the nodes, and read what has been recorded."""
        give_up = time.monotonic() + settle_s
        while self._unsettled() and time.monotonic() < give_up:
            self.rest(0.05)
        leases = sum(node.leases for node in self.cluster.store.nodes())
        for node in self.nodes.values():
            node.term()
        for node in self.nodes.values():
            node.wait()
        return Harvest(grove=self, history=self._history(leases))

    def _unsettled(self) -> bool:
        store = self.cluster.store
        leases = quietly(lambda: _open(store) or sum(node.leases for node in store.nodes()))
        return leases is None or leases > 0

    def _history(self, leases: int) -> History:
        store = self.cluster.store
        jobs = list(_all_jobs(store))
        attempts: list[Attempt] = [attempt for job in jobs for attempt in store.attempts(job.id)]
        stretches = read(self.notes, self.thaws)
        return History(
            kinds=KINDS,
            capacities=CAPACITIES,
            accepted=self.accepted,
            doubtful=self.doubtful,
            children=self.children,
            needs=self.needs,
            cancels=self.cancels,
            leases=leases,
            thaws=self.thaws,
            jobs=[Kept(id=j.id, type=j.type, state=j.state, parent_id=j.parent_id) for j in jobs],
            attempts=attempts,
            stretches=stretches,
            refused=list(self._refused()),
        )

    def _refused(self) -> Iterator[Late]:
        for log in self.logs.iterdir():
            for job_id, fence in _REFUSED.findall(log.read_text()):
                yield Late(job_id=int(job_id), fence=int(fence))

    def given_up(self) -> int:
        """How many records nodes kept to themselves when they learnt that their leases were gone. (Of one whose commit
        was never answered nobody can say that it was not taken: so the checker does not ask for these.)"""
        lines = (line for log in self.logs.iterdir() for line in log.read_text().splitlines())
        return sum(len(_RECORD.findall(line)) for line in lines if _GIVEN_UP in line)

    def log(self, name: str) -> str:
        return (self.logs / name).read_text()

    def close(self) -> None:
        self.serving.clear()
        self.cluster.close()


@dataclass(frozen=True)
class Harvest:
    """What is known in the end."""

    grove: Grove
    history: History

    @property
    def findings(self) -> list[Finding]:
        return judge(self.history)

    @property
    def stretches(self) -> Sequence[Stretch]:
        return self.history.stretches

    @property
    def recovery_s(self) -> float | None:
        """Until what was hit went on; None: nothing was hit."""
        recovered = sorted(recoveries(self.stretches, self.grove.blows), reverse=True)
        print("slowest to recover:", *(f"{took_s:.2f} s {what};" for took_s, what in recovered[:5]))
        return recovered[0][0] if recovered else None


def quietly(look: Callable[[], T]) -> T | None:
    """What it returns; None while the database is away."""
    try:
        return look()
    except SpinneyError:
        return None


def _open(store: Store) -> int:
    return sum(number for state, number in store.counts(Filter()).items() if state not in SETTLED)


def _all_jobs(store: Store) -> Iterator[Job]:
    after = 0
    while page := store.jobs(Filter(), after=after, limit=_PAGE):
        yield from page
        after = page[-1].id


def works(grove: Grove, jobs: int = 10) -> None:
    """Wait until so many have completed: the load is on."""
    until(lambda: (quietly(grove.cluster.counts) or {}).get("completed", 0) >= jobs, "they work")
