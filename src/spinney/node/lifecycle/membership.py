"""The membership of a node in the cluster: joining, heartbeats, wake-ups, leaving."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from spinney import wakeup
from spinney.folders import folders
from spinney.model.homes import FolderRoot
from spinney.model.jobs import NodeInfo
from spinney.model.rights.actor import Actor
from spinney.model.values.paths import socket_name
from spinney.node.context import NodeContext
from spinney.node.instance import Instance
from spinney.node.lifecycle.deadline import Deadline, boot_ns
from spinney.node.lifecycle.heartbeat import Heartbeat, good_until_ns
from spinney.node.lifecycle.takeover import join_cluster, startup_lock, wait_for_name
from spinney.node.local_host import LocalHost
from spinney.node.settings import NodeSettings
from spinney.node.workers.worker_reports import Hello
from spinney.store.parts import Store
from spinney.version import VERSION
from spinney.wakeup import local as wakeup_socket

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A node that has joined the store, with the heartbeat that keeps its leases."""

    node_id: int
    home: int
    """The store's id of this node's folder root, where folders are local; else 0."""
    heartbeat: Heartbeat


@asynccontextmanager
async def membership(
    context: NodeContext,
    own: Instance,
    hello: Hello,
    *,
    register: Callable[[], Awaitable[None]],
    open_for_beats: Callable[[], Store],
    deadline: Deadline,
    root_fingerprint: str | None,
    on_dead: Callable[[str], None],
    trouble: Callable[[], str | None],
) -> AsyncIterator[Member]:
    """Join the cluster, be a member within the block, and leave it.

    ``register``: see ``wait_for_name``. ``root_fingerprint``: that of the folder root, where folders are local.
    ``on_dead``: see ``Heartbeat``. ``trouble`` returns why the node is degraded, which each heartbeat stores. Raises
    NodeRefused when another node has the name.
    """
    settings, host, writer, now_us = context.settings, context.host, context.writer, context.now_us
    node = _node_info(settings, own, host, hello, root_fingerprint)
    lease_s = settings.lease_period_s
    await _skip_numbers_of_folders(context)
    async with startup_lock(host.run_dir, settings.name):
        await wait_for_name(context, register)
        # It is set before the node joins, because the guard cleans up after it only when it holds no leases.
        deadline.renew(good_until_ns(boot_ns(), lease_s))
        joined_us = now_us()
        joined = await writer.insist(lambda store: join_cluster(store, node, joined_us), for_s=lease_s)
    heartbeat = Heartbeat(
        open_for_beats,
        joined.id,
        deadline=deadline,
        lease_period_s=lease_s,
        beat_s=settings.beat_s,
        now_us=now_us,
        on_dead=on_dead,
        trouble=trouble,
    )
    own_socket = socket_name(settings.name, own.pid)
    with heartbeat:
        async with wakeup_socket.received_wakeups(host.run_dir, own_socket, context.signals.woken):
            yield Member(node_id=joined.id, home=joined.home, heartbeat=heartbeat)
    # Only after the last heartbeat: one of a node that has left would be refused.
    left_us = now_us()
    await writer.insist(
        lambda store: store.update_node(joined.id, state="left", now_us=left_us), for_s=lease_s
    )
    deadline.renew(0)  # nothing is leased any more, nothing can come too late
    await context.reader.call(lambda store: wakeup.wake_all(store, host.run_dir))


async def _skip_numbers_of_folders(context: NodeContext) -> None:
    """Let the store skip the job numbers whose folders exist already, so that no new job gets the folder of another.

    That would happen after an older backup of the store was restored: it would give out again the numbers of the jobs
    that were submitted after the backup."""
    highest_job = await asyncio.to_thread(folders.highest_job, context.host.folder_root)
    actor, at_us = Actor(by=f"node {context.settings.name}"), context.now_us()
    if await context.writer.insist(
        lambda store: store.homes.skip_numbers(highest_job, actor, now_us=at_us),
        for_s=context.settings.lease_period_s,
    ):
        log.warning(
            "there is a folder of job %d, which the store does not have: an older backup was restored; new jobs are "
            "numbered from %d on, fences and events of webhooks a million higher; run 'spinney doctor' to see the "
            "folders without a job",
            highest_job,
            highest_job + 1,
        )


def _node_info(
    settings: NodeSettings, own: Instance, host: LocalHost, hello: Hello, root_fingerprint: str | None
) -> NodeInfo:
    """Return the row with which this node joins. The store gives it its id, and counts its heartbeats from
    0."""
    root = None if root_fingerprint is None else FolderRoot(root_fingerprint, str(Path(settings.folders)))
    return NodeInfo(
        id=0,
        name=settings.name,
        boot_id=host.boot_id,
        host=host.host,
        pid=own.pid,
        slots=settings.slots,
        state="active",
        beat=0,
        started_us=own.started_us,
        seen_us=own.started_us,
        version=VERSION,
        types=tuple(job_type.name for job_type in hello.types),
        stages=tuple(
            f"{job_type.name}/{stage.name}" for job_type in hello.types for stage in job_type.stages
        ),
        serves=settings.serves,
        root=root,
        lease_s=settings.lease_period_s,
    )
