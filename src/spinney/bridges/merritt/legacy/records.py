"""Records of the queues before this layout: a status byte, eight bytes of time, and a payload, in one node each."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final

from kazoo.client import KazooClient

from spinney.bridges.merritt import layout
from spinney.bridges.merritt.errors import MerrittZKNodeInvalid
from spinney.bridges.merritt.legacy import payload
from spinney.bridges.merritt.nodes import children, get

_HEADER_BYTES: Final = 9
_NAME: Final = re.compile(r"mrtQ-(\d\d)\d*(\d{10})")
"""Two digits of priority, sometimes more digits, and the ten of ZooKeeper."""
_MILLISECONDS_FROM: Final = 10**11
"""The design says that times are seconds; some writers wrote milliseconds. As seconds this is the year 5138."""


class LegacyQueue(Enum):
    """The queues before this layout, with their nodes."""

    INGEST = "/ingest"
    INVENTORY = "/mrt.inventory.full"
    ACCESS_SMALL = "/accessSmall.1"
    ACCESS_LARGE = "/accessLarge.1"


class LegacyStatus(Enum):
    """What the first byte of a record says."""

    PENDING = 0
    CONSUMED = 1
    DELETED = 2
    FAILED = 3
    COMPLETED = 4
    HELD = 5


@dataclass(frozen=True, slots=True)
class LegacyRecord:
    """One record as it was read."""

    queue: LegacyQueue
    path: str
    priority: int | None
    """From its name; lower numbers were served first."""
    number: int | None
    """ZooKeeper's number, from its name."""
    status: LegacyStatus
    time: datetime
    fields: dict[str, Any]
    """Its payload, as ``payload.parse`` returns it."""
    version: int
    """The version of its node, by which a move sees that it has changed."""


def parse_record(queue: LegacyQueue, path: str, data: bytes, version: int = 0) -> LegacyRecord:
    """Return the record that a node's data are. Raises MerrittZKNodeInvalid."""
    if len(data) < _HEADER_BYTES:
        raise MerrittZKNodeInvalid(f"{path} has {len(data)} bytes, fewer than a header; move it by hand.")
    try:
        status = LegacyStatus(data[0])
        time = int.from_bytes(data[1:_HEADER_BYTES], "big", signed=True)
        moment = datetime.fromtimestamp(time / 1000 if abs(time) >= _MILLISECONDS_FROM else time, UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise MerrittZKNodeInvalid(f"{path} has no legacy header ({error}); move it by hand.") from None
    name = _NAME.fullmatch(layout.name(path))
    priority, number = (int(name[1]), int(name[2])) if name else (None, None)
    fields = payload.parse(path, data[_HEADER_BYTES:])
    return LegacyRecord(queue, path, priority, number, status, moment, fields, version)


def list_records(client: KazooClient) -> tuple[list[LegacyRecord], list[MerrittZKNodeInvalid]]:
    """Return the records of all legacy queues in their order, and an error for each that cannot be read."""
    records: list[LegacyRecord] = []
    errors: list[MerrittZKNodeInvalid] = []
    for queue in LegacyQueue:
        for path in (f"{queue.value}/{name}" for name in children(client, queue.value)):
            try:
                records.append(parse_record(queue, path, *get(client, path)))
            except MerrittZKNodeInvalid as error:
                errors.append(error)
    return records, errors
