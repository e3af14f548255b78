"""A simulated world: hosts, nodes, one database, operators, and what befalls them. A seed decides everything.

A life has two parts. In the first, jobs are submitted, operators do what they like, and faults happen, of kinds
that the seed has chosen for this world. In the second, faults stop, the clocks are right again, one node at
least is there, somebody releases what is held, and everything has to settle within bounded time, and the doctor
has to find nothing.
"""

import asyncio
import contextlib
import gc
import hashlib
import itertools
import random
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from in_memory import in_memory
from spinney.folders.folders import write_token
from spinney.model.errors import CommitUncertain, StoreUnavailable
from spinney.model.states import SETTLED
from spinney.node.instance import Instance

from . import clockwork, strands
from .application import Application
from .faults import Faults
from .loop import Process, SimLoop
from .nodes import Host, SimNode
from .operators import Operator
from .oracle import Oracle, Violation
from .stores import Memory, SimStore
from .threads import Wire

SETTLE_S = 90.0
"""Within so much (virtual) time of calm everything has to have settled."""
MOST_STEPS = 400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """How one seed's world fared."""

    seed: int
    digest: str
    """Of everything that happened, in order."""
    violation: str | None
    steps: int
    jobs: int
    attempts: int
    seconds: float
    """Of virtual time."""
    tail: tuple[str, ...]
    """The last things that happened."""


def live(
    seed: int,
    *,
    make_store: type[SimStore] = SimStore,
    focus: str | None = None,
    trace: Callable[[str], None] | None = None,
) -> Life:
    """Run the world of this seed to its end. ``focus`` says what it is about, else that is drawn. ``trace``
    gets the lines of its log."""
    with TemporaryDirectory(prefix="spinney-sim-", dir=in_memory()) as folder, _no_collection():
        world = World(seed, Path(folder), make_store, focus, trace)
        with clockwork.in_place(world, world.rng), clockwork.quiet(world.log if trace else None):
            world.run()
        return world.life()


@contextmanager
def _no_collection() -> Iterator[None]:
    """A life keeps nearly all it makes until it is over: to look for garbage in it meanwhile takes a seventh of it."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class World:
    """See the module's docstring."""

    def __init__(
        self,
        seed: int,
        folder: Path,
        make_store: type[SimStore],
        focus: str | None,
        trace: Callable[[str], None] | None,
    ) -> None:
        self.seed, self.folder, self._make_store, self._trace = seed, folder, make_store, trace
        self.rng = random.Random(seed)
        self.loop = SimLoop(self.rng, self._trouble)
        self.loop.world = self  # type: ignore[attr-defined]
        self.root = folder / "folders"
        self.root.mkdir()
        self.application = Application(narrow=self.rng.choice((1, 2)))
        self.oracle = Oracle(self.application.types, self.loop.time, self._lease_s, self._is_gone)
        self.memory = Memory()
        write_token(self.root, "sim")
        self.calm = False
        self.strand: strands.Strand | None = None
        self.at_gate: Callable[[], None] | None = None
        self.node_numbers = itertools.count(1)
        self.nodes: list[SimNode] = []
        self._fate = Process(self.loop, "fate")
        self.wire = Wire(Process(self.loop, "wire"))
        self.faults = Faults(self, focus)
        self.hosts = [Host(self, f"host{n}") for n in range(self.faults.hosts)]
        self.operators: list[Operator] = []
        self._digest = hashlib.sha256()
        self._tail: deque[str] = deque(maxlen=60)

    # --- a life ---------------------------------------------------------------------------

    def run(self) -> None:
        asyncio._set_running_loop(self.loop)
        try:
            with contextlib.suppress(Violation):
                self._live()
        finally:
            for node in self.nodes:
                node.supervisor.stopped = False
                for process in (node.supervisor, node.guard, *node.workers):
                    process.die()
            for operator in self.operators:
                operator.process.die()
            self.loop.close()
            asyncio._set_running_loop(None)
            for node in self.nodes:
                node.close()
            self.memory.close()

    def _live(self) -> None:
        self.operators.append(Operator(self))
        self.faults.begin()
        self._until(lambda: self.loop.now >= self.faults.until)
        self.faults.end()
        self.calm = True
        self.note(None, "calm")
        ends = self.loop.now + SETTLE_S
        self._until(lambda: self._at_rest() or self.loop.now > ends)
        if not self._at_rest():
            self.oracle.violated(f"never settles: {self._open()}")
        rest = self.loop.now + 1.0
        self._until(lambda: self.loop.now >= rest)
        self._examine()

    def _until(self, done: Callable[[], bool]) -> None:
        while not done():
            if self.oracle.violation is not None:
                raise Violation(self.oracle.violation)
            if not self.loop.step():
                self.oracle.violated(f"nothing happens any more: {self._open()}")
            if self.loop.steps > MOST_STEPS:
                self.oracle.violated(f"it does not come to rest: {self._open()}")

    def _at_rest(self) -> bool:
        oracle = self.oracle
        return not oracle.leases and not self._open() and self.operators[-1].idle

    def _open(self) -> dict[int, str]:
        return {job_id: state for job_id, state in self.oracle.states.items() if state not in SETTLED}

    def _examine(self) -> None:
        """At the end, with everything at rest: the doctor finds nothing."""
        self.faults.active = False
        operator = self.operators[-1]

        def look() -> None:
            store = self.open_store(operator.process)
            findings = list(store.doctor.examine(now_us=operator.machine.host.wall_us()))
            store.audit.verify()
            if findings:
                self.oracle.violated(f"the doctor finds {findings}")

        operator.process.context.copy().run(look)

    # --- for all parts --------------------------------------------------------------------

    def draw(self, least: float, most: float) -> float:
        return least + self.rng.random() * (most - least)

    def from_within(self, do: Callable[[], object]) -> None:
        """Code in some thread of a process ends that process, and does not return; or stops it."""
        if self.strand is None:
            do()
            return
        self.at_gate = do
        self.strand.pause()

    def chance(self, what: str) -> bool:
        """Whether this fault happens now."""
        return self.faults.chance(what)

    def latency_s(self) -> float:
        """How long a call waits for its turn."""
        draw = self.rng.random()
        if draw < 0.8:
            return 0.0002 + draw * 0.002
        return self.faults.slow_s() * (draw - 0.8)

    def open_store(self, process: Process) -> SimStore:
        return self._make_store(
            self.memory, self.oracle, Gate(self, process), random.Random(self.rng.random())
        )

    def note(self, process: Process | None, text: str) -> None:
        line = f"{self.loop.now:11.6f} {process or 'world'}: {text}".replace(str(self.folder), "…")
        self._digest.update(line.encode())
        self._digest.update(b"\n")
        self._tail.append(line)
        if self._trace is not None:
            self._trace(line)

    def log(self, text: str) -> None:
        """Write to the trace, but not into the digest: a life is the same whether it is traced or not."""
        if self._trace is not None:
            self._trace(f"{self.loop.now:11.6f}   {text}")

    def failed(self, who: str, error: BaseException) -> None:
        """Something ended in a way that nobody foresaw."""
        if self.oracle.violation is None:
            self.oracle.violation = f"{who}: {type(error).__name__}: {error}"
            self.cause = error

    def wake_nodes(self, run_dir: Path, but: str | None = None) -> None:
        """Wake the nodes of one host; a wake-up may be lost."""
        for host in self.hosts:
            if host.run_dir == run_dir:
                for name, (process, on_wakeup) in list(host.received_wakeups.items()):
                    if name != but and not self.chance("lost_wakeup"):
                        process.post(on_wakeup, delay_s=self.draw(0.0, 0.005))

    # --- nodes ----------------------------------------------------------------------------

    def later(self, what: Callable[[], object], delay_s: float) -> None:
        """Nobody's doing: it happens."""
        self._fate.post(what, delay_s=delay_s)

    def start_node(self, host: Host, name: str, *, slots: int, replace: bool = False) -> SimNode:
        node = SimNode(self, host, name, slots=slots, replace=replace)
        self.nodes.append(node)
        remark = "" if node.says_lease else " (untold)"
        self.note(None, f"starts {node} slots={slots} replace={replace} lease={node.lease_s:g}{remark}")
        return node

    def alive(self) -> list[SimNode]:
        return [node for node in self.nodes if not node.ended]

    def left(self, node: SimNode) -> None:
        """Nothing of it is left."""
        self.note(None, f"{node} is gone")
        node.close()

    def _node(self, node_id: int) -> SimNode:
        """The node that joined with this number."""
        host, pid = self.memory.connection.execute(
            "select host, pid from nodes where id = ?", (node_id,)
        ).fetchone()
        return next(node for node in self.nodes if (node.host.name, node.instance.pid) == (host, pid))

    def _is_gone(self, node_id: int) -> bool:
        """Whether nothing is left of a node, in truth."""
        return self._node(node_id).ended

    def _lease_s(self, node_id: int) -> float:
        """The lease period that a node obeys, in truth."""
        return self._node(node_id).lease_s

    def guarded(self, host: Host, instance: Instance) -> bool:
        """Whether the guard of an instance lives on this host."""
        return any(node.host is host and node.instance == instance for node in self.alive())

    def kill_by_instance(self, host: Host, instance: Instance) -> int:
        """What bears the mark of an instance is killed, which here is the whole node; how many that were."""
        marked = [node for node in self.alive() if node.host is host and node.instance == instance]
        for node in marked:
            node.kill()
        return len(marked)

    def term(self, host: Host, pid: int) -> None:
        for node in self.alive():
            if node.host is host and node.instance.pid == pid:
                node.term()

    # --- helping --------------------------------------------------------------------------

    def life(self) -> Life:
        return Life(
            seed=self.seed,
            digest=self._digest.hexdigest(),
            violation=self.oracle.violation,
            steps=self.loop.steps,
            jobs=len(self.oracle.states),
            attempts=self.oracle.runs,
            seconds=self.loop.now - 1000.0,
            tail=tuple(self._tail),
        )

    def _trouble(self, message: str, error: BaseException | None) -> None:
        if isinstance(error, Violation):
            return  # known already
        if isinstance(error, RuntimeError) and "is shutting down" in str(error):
            return  # a node that ends with an error: that error is the one to report
        self.failed(f"a callback ({message})", error or RuntimeError(message))


class Gate:
    """What happens around the transactions of one store object; see ``stores.Gates``."""

    def __init__(self, world: World, process: Process) -> None:
        self._world, self._process = world, process
        self.records = False

    def before(self, *, first: bool, writes: bool = False) -> None:
        world = self._world
        if world.strand is None:
            return  # nobody's thread: the world itself looks
        if self._process.dead and not first:
            raise strands.Killed
        if not first:
            world.strand.pause()
        if writes:
            self._strike_or_not("before")
        if self._unreachable() or world.chance("unusable"):
            raise StoreUnavailable("the database does not answer; wait")

    def after(self) -> None:
        world = self._world
        if world.strand is None:
            return
        self._strike_or_not("after")
        if world.chance("answer_lost"):
            world.note(self._process, "committed, and the answer is lost")
            raise CommitUncertain("the connection was lost; look")

    def note(self, text: str) -> None:
        self._world.note(self._process, text)

    def _unreachable(self) -> bool:
        return self._world.loop.now < float(self._process.machine.unreachable_until)

    def _strike_or_not(self, where: str) -> None:
        """The process dies here, or its whole machine stands still."""
        machine, world = self._process.machine, self._world
        if machine.strike_in is None or world.calm or (world.faults.at_records and not self.records):
            return
        machine.strike_in -= 1
        if machine.strike_in <= 0:
            machine.strike_in = None
            world.note(self._process, f"is struck {where} a transaction")
            world.from_within(machine.strike)
