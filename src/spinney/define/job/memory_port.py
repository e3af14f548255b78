"""A job handle's port that answers from memory, for stages that run without a node: in tests and under a debugger."""

import itertools
from collections.abc import Callable, Collection, Iterable, Mapping
from copy import deepcopy
from typing import Any, NamedTuple

import orjson

from spinney.define.job.data import require_small
from spinney.define.job.handle import Child
from spinney.define.params.values import to_text
from spinney.model.errors import Cycle, DuplicateKey, Refused, UnknownType, UsageError
from spinney.model.settings.capacities import Capacities


class Spawned(NamedTuple):
    """A subjob or an independent job that a stage created while it ran without a node. No store has it, and its own
    stages do not run."""

    id: int
    type: str
    params: dict[str, Any]
    key: str | None
    order: Mapping[str, Any]
    """The other options, as they are sent: ``queue``, ``priority``, ``needs`` …"""


class MemoryPort:
    """Answers the requests of one job's stages (``spinney.define.job.port``) and keeps what they wrote. It refuses what
    a node refuses, as far as it can know; which other jobs exist it does not."""

    capacities: Capacities | None = None
    """The capacities of locks; None: only those that stages name are known."""

    def __init__(
        self,
        data: dict[int, dict[str, Any]],
        *,
        results: Mapping[str, Any],
        children: Iterable[Child] = (),
        taken: Iterable[str] = (),
        cancelled: bool = False,
        ancestry: Collection[int],
        first_id: int,
        place: str,
    ) -> None:
        """``data``: those of the job, its parent and its root, by job id. ``taken``: locks that another job has.
        ``ancestry``: the ids of the job, its parent and its root, which wait for its subjobs. ``first_id``: the id of
        the first job that a stage creates. ``place``: what this port is called in errors."""
        self._data, self._ancestry, self.results = data, ancestry, dict(results)
        self.locks: list[str] = []
        self.amounts: dict[str, int] = {}
        """How much the job has of each lock that it took."""
        self.spawned: list[Spawned] = []
        self.submitted: list[Spawned] = []
        self.priority: int | None = None
        """The priority that a stage has set; None: it has set none."""
        self.progress: list[tuple[float, str | None]] = []
        self._children, self._taken = list(children), set(taken)
        self._cancelled, self._ids, self._place = cancelled, itertools.count(first_id), place

    def data_of(self, job_id: int) -> dict[str, Any]:
        """Return the data of the job, its parent or its root, as they are now."""
        return self._data[job_id]

    def cancelled(self) -> bool:
        """Return whether this port says that cancellation was requested."""
        return self._cancelled

    def ask(self, verb: str, **args: Any) -> Any:
        """Answer a request from memory. Raises what a node would raise, and UsageError for a verb that only a
        node can answer."""
        answer: Callable[..., Any] | None = getattr(self, f"_answer_{verb}", None)
        if answer is None:
            raise UsageError(f"{self._place} cannot answer {verb!r}; try this stage on a node")
        return answer(**args)

    def _answer_get_data(self, target: int, name: str | None) -> dict[str, Any]:
        return deepcopy({k: value for k, value in self._data[target].items() if name is None or k == name})

    def _answer_data_names(self, target: int) -> list[str]:
        return list(self._data[target])

    def _answer_put_data(self, target: int, name: str, value: str | None) -> None:
        if value is None:
            self._data[target].pop(name, None)
        else:
            require_small(name, value)
            self._data[target][name] = orjson.loads(value)

    def _answer_append_data(self, target: int, name: str, value: str) -> int:
        earlier = self._data[target].get(name, [])
        if not isinstance(earlier, list):
            raise Refused(f"data entry {name!r} of job {target} is no list; append to another name")
        entries = [*earlier, orjson.loads(value)]
        self._answer_put_data(target, name, to_text(entries, f"data[{name!r}]"))
        return len(entries)

    def _answer_results(self) -> dict[str, Any]:
        return deepcopy(self.results)

    def _answer_spawn(self, submissions: list[dict[str, Any]]) -> list[int]:
        for need in itertools.chain.from_iterable(row.get("needs", ()) for row in submissions):
            if need in self._ancestry:
                raise Cycle(
                    f"job {need} waits for the new job, so that both would wait for ever; take {need} out of its needs"
                )
        self._refuse_keys_of_other_types(submissions, self.spawned, forever=True)
        return self._create(submissions, self.spawned)

    def _answer_submit(self, submissions: list[dict[str, Any]], beside: int | None) -> list[int]:
        self._refuse_keys_of_other_types(submissions, self.submitted)
        return self._create(submissions, self.submitted)

    def _refuse_keys_of_other_types(
        self, submissions: list[dict[str, Any]], among: list[Spawned], *, forever: bool = False
    ) -> None:
        for earlier in among:
            for row in submissions:
                if earlier.key in row.get("keys", ()) and earlier.type != row["type"]:
                    raise DuplicateKey(
                        str(earlier.key), earlier.id, forever=forever or "forever" in earlier.order
                    )

    def _create(self, submissions: list[dict[str, Any]], among: list[Spawned]) -> list[int]:
        """Add the jobs whose key is not ``among`` the earlier ones yet; return the ids of all."""
        ids = []
        for row in submissions:
            order = {k: v for k, v in row.items() if k not in ("type", "params", "keys")}
            for text, key in itertools.zip_longest(row["params"], row.get("keys", ())):
                same = next((s for s in among if key is not None and s.key == key), None)
                if same is None:
                    same = Spawned(next(self._ids), row["type"], orjson.loads(text), key, order)
                    among.append(same)
                ids.append(same.id)
        return ids

    def _answer_prioritise(self, priority: int) -> None:
        self.priority = priority

    def _answer_type_schema(self, type: str) -> dict[str, Any]:  # noqa: A002  the verb's own word
        raise UnknownType(f"{self._place} knows no job type {type!r} by name; spawn it by its handle")

    def _answer_take_lock(self, name: str, until: str, amount: int, capacity: int | None) -> bool:
        if name in self._taken:
            return False
        if self.capacities is not None:
            capacity = self.capacities.in_force(name, capacity)
        if capacity is not None and amount > max(capacity, self.amounts.get(name, 0)):
            raise UsageError(
                f"the lock {name!r} has a capacity of {capacity}, so that nobody can take {amount} of it; take less, "
                f"or declare a larger capacity with app.lock"
            )
        self.locks.append(name)
        self.amounts[name] = amount
        return True

    def _answer_progress(self, fraction: float, message: str | None) -> None:
        self.progress.append((fraction, message))

    def _answer_children(self, after: int, limit: int) -> list[list[Any]]:
        return [deepcopy(list(child)) for child in self._children if child.id > after][:limit]
