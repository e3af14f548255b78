"""A put: which contents are new, what the version looks like, and whether there is to be one."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from spinney.apps.ingest.files.paths import NotAdmitted, shown
from spinney.apps.ingest.storage import object_inventory as inventories
from spinney.apps.ingest.storage import put_plan, sources
from spinney.apps.ingest.storage.contract import Incoming, Stored
from spinney.apps.ingest.storage.object_inventory import Block, Inventory
from spinney.apps.ingest.storage.place import Claim, Draft, Place, Shape, Writing
from spinney.apps.ingest.storage.version_blocks import checked_key, user_block, with_key


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A put as it was asked for."""

    files: Iterable[Incoming]
    message: str
    user: str
    created: datetime
    merge: bool


def put(place: Place, claim: Claim, order: Order, algorithm: str) -> Stored:
    """Do it; ``algorithm`` addresses the content of an object that is new. Raises NotAdmitted, Busy, OSError."""
    checked_key(claim.key)
    if order.created.tzinfo is None:
        raise ValueError("the time of a version has no time zone; give an aware datetime")
    wanted = put_plan.laid_out(order.files)
    with place.writing(claim) as room:
        loaded = room.newest()
        before = loaded.inventory if loaded else None
        if before is not None and (made := inventories.made_by(before, claim.key)) is not None:
            return _made_before(place, claim, before, made)
        state = inventories.state(before) if before else {}
        kept_paths = set(state) | set(wanted) if order.merge else set(wanted)
        if not kept_paths:
            raise NotAdmitted(f"{shown(claim.object_id)} would have no file at all; give at least one")
        put_plan.apart(kept_paths)
        shape = _shape(before, algorithm)
        room.begin(shape)
        stock = _stock(room, wanted, before, shape.algorithm)
        after = put_plan.over(state, stock.digests, merge=order.merge)
        if before is not None and after == state:
            room.forget()
            return Stored(version=before.head, changed=False, files=len(after), added_files=0, added_bytes=0)
        inventory = inventories.successor(
            before,
            object_id=claim.object_id,
            algorithm=shape.algorithm,
            state=after,
            added=stock.added,
            block=Block(
                created=order.created, message=with_key(order.message, claim.key), user=user_block(order.user)
            ),
        )
        room.commit(Draft(inventory=inventory, algorithm=shape.algorithm, contents=stock.added.keys()))
    return Stored(
        version=1 if before is None else before.head + 1,
        changed=True,
        files=len(after),
        added_files=len(stock.added),
        added_bytes=stock.added_bytes,
    )


@dataclass(slots=True, kw_only=True)
class _Stock:
    digests: dict[str, str] = field(default_factory=dict)
    added: dict[str, dict[str, str]] = field(default_factory=dict)
    added_bytes: int = 0


def _stock(room: Writing, wanted: Mapping[str, Incoming], before: Inventory | None, algorithm: str) -> _Stock:
    stock = _Stock()
    have = before.manifest.keys() if before else frozenset[str]()
    reading: list[Incoming] = []
    coming: set[str] = set()
    for file in wanted.values():
        known = file.sums.get(algorithm)
        if known is None or (known not in have and known not in coming):
            reading.append(file)
            coming.update([known] if known else [])
        else:
            with sources.opened(file):
                stock.digests[file.path] = known
    _compare_known(wanted, stock.digests, before)
    for file, kept in zip(reading, room.keep(reading, have), strict=True):
        stock.digests[file.path] = kept.digest
        if not kept.added:
            continue
        stock.added_bytes += 0 if kept.digest in stock.added else kept.size_bytes
        stock.added.setdefault(kept.digest, {}).update(kept.sums)
    return stock


def _compare_known(
    wanted: Mapping[str, Incoming], known: Mapping[str, str], before: Inventory | None
) -> None:
    """What is not read again still may not contradict the digests on record."""
    if before is None or not any(len(wanted[path].sums) > 1 for path in known):
        return
    by_content = inventories.sums_by_content(before)
    for path, value in known.items():
        if value in before.manifest:
            sources.compare_sums(wanted[path], by_content[before.manifest[value][0]])


def _shape(before: Inventory | None, algorithm: str) -> Shape:
    if before is None:
        return Shape(version="v1", content="content", algorithm=algorithm)
    name = before.name(before.head + 1)
    # OCFL 1.1 section 3.3: v09 is followed by nothing, for all names have the same length.
    if before.width and len(name) > before.width + 1:
        raise NotAdmitted(
            f"{shown(before.id)} has as many versions as its zero-padded names can tell; migrate it"
        )
    return Shape(version=name, content=before.content, algorithm=before.algorithm)


def _made_before(place: Place, claim: Claim, inventory: Inventory, number: int) -> Stored:
    size_of = place.sizes(claim.root)
    start = f"{inventory.name(number)}/"
    added = [p for places in inventory.manifest.values() for p in places if p.startswith(start)]
    return Stored(
        version=number,
        changed=True,
        files=len(inventories.state(inventory, number)),
        added_files=len(added),
        added_bytes=sum(size_of(p) or 0 for p in added),
    )
