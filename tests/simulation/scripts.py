"""What stages do when they run: drawn, but for what the job's type is there for."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from spinney.define.job import options
from spinney.model.jobs import Submission
from spinney.model.outcomes import Outcome

from .application import LEAVES, QUEUES, WIDE

if TYPE_CHECKING:
    from .workers import Worker

_RUN_S = (0.0005, 0.0005, 0.01, 0.05, 0.2)
_ENDS = (
    *[Outcome.OK] * 14,
    Outcome.WARNING,
    Outcome.NOT_APPLICABLE,
    Outcome.FINISH,
    Outcome.ERROR,
    Outcome.ERROR,
    Outcome.DEFER,
    Outcome.HOLD,
    Outcome.LOCKED,
)

_LOOK_S = 0.2
"""How often user code looks whether it is to end."""


class EndRequested(Exception):
    """The script has seen that somebody wants it to end."""


Detail = Mapping[str, Any]


class Script:
    """One attempt. ``run`` returns the detail of its row, as ``spinney.node.worker.result_rows`` makes it."""

    def __init__(self, worker: "Worker", row: Sequence[Any], type_: str, stage: str, attempt: int) -> None:
        self._worker, self._world = worker, worker.world
        self._job_id, self._fence, self._params = row[0], row[1], json.loads(row[3])
        self._type, self._stage, self._attempt = type_, stage, attempt

    async def run(self) -> Detail | None:
        try:
            return await self._do()
        except EndRequested:
            return {"outcome": Outcome.ERROR, "message": "told to end", "retryable": False}

    async def _do(self) -> Detail | None:
        rng, calm = self._world.rng, self._world.calm
        await self._sleep(self._run_s())
        if self._stage == "expand":
            await self._bear(calm)
        if not calm and rng.random() < 0.1:
            await self._worker.ask(self._fence, "put_data", target=self._job_id, name="seen", value="1")
        if not calm and rng.random() < 0.05:
            await self._sleep(rng.choice(_RUN_S))
        if not calm and rng.random() < 0.15 and (waits := await self._take("wide:1", rng.randint(0, WIDE))):
            return waits
        outcome = Outcome.OK if calm else rng.choice(_ENDS)
        if outcome is Outcome.LOCKED:
            # Two that keep a lock until they settle, and each want the other's, wait for ever: nobody notices.
            return await self._lock() if self._type != "keeper" else None
        if outcome is Outcome.DEFER:
            lane = rng.random() < 0.3
            return {"outcome": outcome, "delay_s": rng.random() * 1.5, "lane": lane, "message": "later"}
        if outcome is Outcome.ERROR:
            return {"outcome": outcome, "message": "it broke", "retryable": rng.random() < 0.7}
        if outcome is not Outcome.OK:
            return {"outcome": outcome, "message": f"it says {outcome}"}
        if rng.random() < 0.1:
            return {"outcome": outcome, "output": True}
        return None

    def _run_s(self) -> float:
        rng, faults = self._world.rng, self._world.faults
        if not self._world.calm and rng.random() < faults.long:
            return float(faults.longest_s)
        return rng.choice(_RUN_S)

    async def _sleep(self, seconds: float) -> None:
        """User code runs. Half of it looks now and then whether it is to end, and then does."""
        attentive = self._world.rng.random() < 0.5
        while seconds > 0:
            await asyncio.sleep(min(seconds, _LOOK_S))
            seconds -= _LOOK_S
            if attentive and self._worker.cancelled(self._fence):
                raise EndRequested

    async def _bear(self, calm: bool) -> None:
        rng = self._world.rng
        if rng.random() < 0.2:
            return
        n = rng.randint(1, 3)
        is_keyed = rng.random() < 0.3
        type_ = rng.choice(LEAVES)
        keys = tuple(f"{type_}-{k}" for k in range(n)) if is_keyed else None
        made = Submission(
            type=type_,
            params=tuple(json.dumps({"place": rng.randint(1, 2)}) for _ in range(n)),
            keys=keys,
            queue=rng.choice(QUEUES) if rng.random() < 0.2 else None,
        )
        await self._worker.ask(self._fence, "spawn", submissions=[options.to_json(made)])
        await self._sleep(rng.choice(_RUN_S))

    async def _lock(self) -> Detail | None:
        return await self._take(f"place:{self._world.rng.randint(1, 2)}", 1)

    async def _take(self, name: str, amount: int) -> Detail | None:
        """Some of a lock, for a while."""
        taken = await self._worker.ask(
            self._fence, "take_lock", name=name, until="attempt", amount=amount, capacity=None
        )
        if not taken:
            message = f"the lock {name} is taken"
            return {"outcome": Outcome.LOCKED, "lock": name, "message": message, "wanted": [amount, None]}
        await self._sleep(self._world.rng.choice(_RUN_S))
        return None
