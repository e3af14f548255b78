"""What commands read of the store itself, where ``Queries`` has no word for it: the same names, asked of a server."""

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property

from spinney.cli.remote.client import RetryingClient
from spinney.commands.job_filter import filter_fields
from spinney.features.jobs.commands import CountJobs, ShowJob
from spinney.features.nodes.commands import ListNodes
from spinney.features.queues.commands import ListQueues, ShowQueue
from spinney.features.types.commands import ListTypes
from spinney.model.access import Role
from spinney.model.errors import NoSuch, UsageError
from spinney.model.fleet import NodeStatus
from spinney.model.jobs import Filter, Job, NodeInfo
from spinney.model.rights.operators import QueueInfo
from spinney.model.types import Isolation, QueueSpec, TypeSpec
from spinney.terminal.filters import fingerprint_beginning


def queue(client: RetryingClient, name: str) -> QueueInfo:
    """Raises UsageError for one that is not there, as every surface but the API's does."""
    try:
        return client.do(ShowQueue(name=name))
    except NoSuch as error:
        raise UsageError(str(error)) from None


class RemoteStore:
    """As a store."""

    def __init__(self, client: RetryingClient) -> None:
        self._client = client
        self.bulk, self.failures = _Names(client), _Failures()
        self.holds, self.queue_admin = _Holds(), _Queues(client)

    @cached_property
    def _types(self) -> Mapping[str, TypeSpec]:
        return {spec.name: spec for spec in self._client.do(ListTypes()).items}

    def types(self) -> Mapping[str, TypeSpec]:
        return self._types

    def job(self, job_id: int) -> Job:
        return self._client.do(ShowJob(job=job_id))

    def nodes(self) -> Sequence[NodeInfo]:
        """Nodes and external workers that have not left."""
        return [*map(_node, self._client.do(ListNodes()).items), *self._external_workers()]

    def _external_workers(self) -> list[NodeInfo]:
        lanes = [
            f"{spec.name}/{stage.name}"
            for spec in self.types().values()
            for stage in spec.stages
            if stage.isolation is Isolation.EXTERNAL
        ]
        if not lanes:
            return []
        rights = self._client.me().rights
        if not (rights.everywhere and rights.permits(Role.OPERATOR)):
            return [
                _external_worker("others", tuple(lanes))
            ]  # who they are is not told: nothing is said of any lane
        return [
            _external_worker(
                external_worker.name,
                tuple(f"{lane['type']}/{lane['stage']}" for lane in external_worker.lanes),
            )
            for external_worker in self._client.external_workers().items
        ]


def _node(status: NodeStatus) -> NodeInfo:
    state = status.state if status.state in ("draining", "left") else "active"
    return NodeInfo(
        id=status.id,
        name=status.node,
        boot_id="",
        host=status.host,
        pid=status.pid,
        slots=status.slots,
        state=state,
        beat=0,
        started_us=status.started_us,
        seen_us=status.seen_us,
        version=status.version,
        types=status.types,
        serves=status.serves,
        leases=status.leases,
        drained=status.drained_by is not None or status.state == "drained",
        load=status.load,
        trouble=status.trouble,
        lease_s=status.lease_s,
    )


def _external_worker(name: str, lanes: tuple[str, ...]) -> NodeInfo:
    return NodeInfo(
        id=0,
        name=name,
        boot_id="",
        host="",
        pid=0,
        slots=0,
        state="active",
        beat=0,
        started_us=0,
        seen_us=0,
        version="",
        types=lanes,
        lease_s=0.0,
        is_external_worker=True,
    )


class _Names:
    def __init__(self, client: RetryingClient) -> None:
        self._client = client

    def names(self, kind: str, *, within: object = None) -> Collection[str] | None:
        """Those of queues; None: a server does not list them."""
        return [info.queue for info in self._client.do(ListQueues()).items] if kind == "queue" else None

    def count(self, filter_: Filter, *, most: int) -> int:
        return min(most, sum(self._client.do(CountJobs(**filter_fields(filter_))).values()))


class _Failures:
    def find(self, beginning: str) -> str:
        """The server finds out which it is. Raises UsageError for what none can be."""
        return fingerprint_beginning(beginning)


class _Queues:
    def __init__(self, client: RetryingClient) -> None:
        self._client = client

    def in_force(self, name: str) -> QueueSpec:
        return queue(self._client, name).in_force


class _Holds:
    def sweep(self, *, now_us: int) -> bool:
        """The server does that by itself."""
        return False
