"""Somebody at a terminal: submits, and uses the operators' verbs at any time, whatever they do to each other.

Each call is one of the verbs on jobs, or one of the store's own. Refusals are answers like any other; what must not
happen is for the oracle to say. In the calm at the end he releases whatever is held, until nothing is open.
"""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import job_verbs
from spinney.model.errors import SpinneyError
from spinney.model.jobs import Filter, Submission
from spinney.model.operators.bulk_orders import Order, Verb
from spinney.model.operators.queues import QueueChange
from spinney.model.rights.actor import Actor
from spinney.model.settings.holds import Scope
from spinney.model.settings.queues import QueueSpec
from spinney.model.states import SETTLED, State

from .application import QUEUES, TYPES
from .loop import Process
from .threads import SimStoreThread

_VERBS = (
    "cancel",
    "cancel_tree",
    "retry",
    "rerun",
    "retry_from",
    "hold",
    "hold",
    "release",
    "delete",
    "run_now",
    "move",
    "priority",
    "limit",
    "set_limit",
    "explain",
    "pause_schedule",
    "drain_node",
    "resume_node",
    "set_slots",
)


_NODES = ("n1", "n2")
_TYPES = tuple(spec.name for spec in TYPES)


class Operator:
    """One command line after the other."""

    def __init__(self, world: Any) -> None:
        self.world = world
        self.machine = self
        self.host = world.hosts[0]
        self.unreachable_until = 0.0
        self.strike_in: int | None = None
        self.process = Process(world.loop, "operator", self)
        self.idle = False
        self._calls = 0
        self._ids: list[int] = []
        self.process.post(self._begin)

    def strike(self) -> None:
        """His command is killed; he types the next one."""
        self.process.die()
        successor = Operator(self.world)
        successor._ids = self._ids
        self.world.operators.append(successor)

    def _begin(self) -> None:
        task = asyncio.get_running_loop().create_task(self._work())
        task.add_done_callback(self._done)

    def _done(self, task: Any) -> None:
        if not task.cancelled() and task.exception() is not None:
            self.world.failed("the operator", task.exception())

    async def _work(self) -> None:
        world, rng = self.world, self.world.rng
        async with SimStoreThread("operator", lambda: world.open_store(self.process)) as self._db:
            await self._say(lambda store: store.register(*world.application.declared))
            await self._submit()
            while not world.calm:
                await asyncio.sleep(rng.choice((0.05, 0.3, 1.0)))
                if not self._ids or (rng.random() < 0.35 and len(world.oracle.states) < world.faults.jobs):
                    await self._submit()
                elif rng.random() < world.faults.meddling:
                    await self._meddle(rng.choice(world.faults.verbs or _VERBS))
            await self._put_right()

    # --- submitting -----------------------------------------------------------------------

    async def _submit(self) -> None:
        rng = self.world.rng
        wanted = [self._submission() for _ in range(rng.choice((1, 1, 2)))]
        made = await self._say(lambda store: store.submit(wanted, now_us=self._now()))
        if made is not None:
            self._ids += made.ids
            self.world.wake_nodes(self.host.run_dir)

    def _submission(self) -> Submission:
        rng = self.world.rng
        open_ids = [i for i in self._ids[-6:] if self.world.oracle.states.get(i) != State.DELETED]
        return Submission(
            type=rng.choice(self.world.faults.types or _TYPES),
            params=tuple(json.dumps({"place": rng.randint(1, 2)}) for _ in range(rng.choice((1, 1, 2, 4)))),
            queue=rng.choice(QUEUES) if rng.random() < 0.4 else None,
            priority=rng.choice((10, 50)) if rng.random() < 0.3 else None,
            share=rng.choice(("ann", "bob")) if rng.random() < 0.2 else None,
            collection=rng.choice(("red", "blue")) if rng.random() < 0.2 else None,
            at_us=self._now() + int(rng.random() * 2e6) if rng.random() < 0.1 else None,
            needs=(rng.choice(open_ids),) if open_ids and rng.random() < 0.15 else (),
        )

    # --- meddling -------------------------------------------------------------------------

    async def _meddle(self, verb: str) -> None:
        rng, now, job = self.world.rng, self._now(), self.world.rng.choice(self._some())
        by = "ann"
        self.world.note(self.process, f"{verb} {job}")
        match verb:
            case "cancel" | "cancel_tree":
                tree = verb == "cancel_tree"
                await self._say(
                    lambda s: job_verbs.cancel(s, job, tree=tree, by=by, reason="wrong", now_us=now)
                )
            case "retry":
                await self._say(lambda s: job_verbs.retry(s, job, stage=None, by=by, now_us=now))
            case "retry_from" | "rerun":
                stage = rng.choice((None, "work", "first", "second", "expand", "merge"))
                if verb == "rerun":
                    await self._say(lambda s: job_verbs.rerun(s, job, stage=stage, by=by, now_us=now))
                elif stage is not None:
                    await self._say(lambda s: job_verbs.retry(s, job, stage=stage, by=by, now_us=now))
            case "hold":
                scope, name = rng.choice(
                    (
                        (Scope.JOB, str(job)),
                        (Scope.TREE, str(job)),
                        (Scope.QUEUE, "narrow"),
                        (Scope.TYPE, "three"),
                        (Scope.COLLECTION, "red"),
                        (Scope.EVERYTHING, ""),
                    )
                )
                until = now + int(rng.random() * 2e6) if rng.random() < 0.5 else None
                await self._say(
                    lambda s: s.holds.lay(scope, name, "why", self._actor(), until_us=until, now_us=now)
                )
                if rng.random() < 0.7:
                    await self._sweep_holds()
            case "release":
                await self._lift(all_of_them=False)
                await self._say(lambda s: job_verbs.release(s, job, by=by, now_us=now))
            case "delete":
                await self._say(lambda s: job_verbs.delete(s, job, by=by, now_us=now))
            case "run_now":
                await self._say(
                    lambda s: s.bulk.apply(Order(verb=Verb.RUN_NOW), [job], self._actor(), now_us=now)
                )
            case "move":
                order = Order(verb=Verb.MOVE, queue=rng.choice(QUEUES))
                await self._say(lambda s: s.bulk.apply(order, [job], self._actor(), now_us=now))
            case "priority":
                order = Order(verb=Verb.PRIORITY, priority=rng.choice((10, 50, 90)))
                await self._say(lambda s: s.bulk.apply(order, [job], self._actor(), now_us=now))
            case "limit":
                spec = QueueSpec(name="narrow", limit=rng.choice((0, 1, 2, 3)), sharing="none")
                await self._say(lambda s: s.register((), (spec,)))
            case "set_limit":
                limit = rng.choice((1, 2, "40%", None))
                change = rng.choice((QueueChange(set={"limit": limit}), QueueChange(declared=("limit",))))
                await self._say(lambda s: s.queue_admin.change("narrow", change, self._actor(), now_us=now))
            case "drain_node":
                await self._say(lambda s: s.fleet.drain(rng.choice(_NODES), self._actor(), now_us=now))
            case "resume_node":
                await self._say(lambda s: s.fleet.resume(rng.choice(_NODES), self._actor(), now_us=now))
            case "set_slots":
                slots = rng.choice((1, 2, 4, None))
                await self._say(
                    lambda s: s.fleet.set_slots(rng.choice(_NODES), slots, self._actor(), now_us=now)
                )
            case "explain":
                await self._say(lambda s: s.explainer.explain(job, now_us=now))
            case "pause_schedule":
                paused = rng.random() < 0.5
                await self._say(
                    lambda s: s.schedules.pause("ticking", self._actor(), paused=paused, now_us=now)
                )
        self.world.wake_nodes(self.host.run_dir)

    def _some(self) -> Sequence[int]:
        """Jobs to meddle with; rather those that run."""
        running = self.world.oracle.at_work()
        if running and self.world.rng.random() < 0.5:
            return sorted(running)
        return sorted(self.world.oracle.states) or self._ids

    # --- putting right --------------------------------------------------------------------

    async def _put_right(self) -> None:
        """Until nothing is open: whatever is held is released."""
        world = self.world
        paused, as_declared = Actor(by="ann", call="calm"), QueueChange(declared=("limit",))
        while True:
            self.idle = False
            await self._say(lambda s: s.schedules.pause("ticking", paused, paused=True, now_us=self._now()))
            await self._say(lambda s: s.register(*world.application.declared))
            await self._say(
                lambda s: s.queue_admin.change("narrow", as_declared, self._actor(), now_us=self._now())
            )
            await self._lift(all_of_them=True)
            await self._sweep_holds()
            held = await self._say(lambda s: s.jobs(Filter(states=(State.HELD,)), limit=1000))
            for job in held or ():
                await self._say(lambda s, j=job.id: job_verbs.release(s, j, by="ann", now_us=self._now()))
            world.wake_nodes(self.host.run_dir)
            self.idle = all(state in SETTLED for state in world.oracle.states.values())
            await asyncio.sleep(1.0)

    async def _lift(self, *, all_of_them: bool) -> None:
        holds = await self._say(lambda s: s.holds.all()) or ()
        if not all_of_them and holds:
            holds = (self.world.rng.choice(holds),)
        for hold in holds:
            await self._say(lambda s, h=hold.id: s.holds.lift(h, self._actor(), now_us=self._now()))
        await self._sweep_holds()

    async def _sweep_holds(self) -> None:
        while await self._say(lambda s: s.holds.sweep(now_us=self._now())):  # noqa: ASYNC110 - each is a step
            await asyncio.sleep(0.01)

    # --- helping --------------------------------------------------------------------------

    def _now(self) -> int:
        return int(self.host.wall_us())

    def _actor(self) -> Actor:
        self._calls += 1
        return Actor(by="ann", call=f"call-{self._calls}")

    async def _say(self, verb: Any) -> Any:
        """What the store answers; None when it refuses, or does not answer."""
        try:
            return await self._db.call(verb)
        except SpinneyError as error:
            self.world.note(self.process, f"is told: {error}")
            return None
