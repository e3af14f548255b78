"""A put: decides which contents are new, what the version contains, and whether one is made."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from spinney.apps.ingest.storage import object_inventory as inventories
from spinney.apps.ingest.storage import sources
from spinney.apps.ingest.storage.model import Incoming, Stored
from spinney.apps.ingest.storage.object_inventory import Inventory, checked_key, user_block, with_key
from spinney.apps.ingest.storage.place import Claim, Place, Put
from spinney.files.digests import digest
from spinney.files.paths import NotAdmitted, relative, require_apart, shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """The files and the particulars of a version that a put is to make."""

    files: Iterable[Incoming]
    message: str
    user: str
    created: datetime
    merge: bool


def put(place: Place, claim: Claim, order: Order, algorithm: str) -> Stored:
    """Make a version, and return it; ``algorithm`` addresses the content of a new object.

    In this order: the put is claimed, one that was interrupted is finished, a version of the same key is
    looked for, contents are stored, and only where they make another state than the newest one, the version
    is committed. Raises NotAdmitted, Busy, OSError, and ValueError for a time without a zone.
    """
    checked_key(claim.key)
    if order.created.tzinfo is None:
        raise ValueError("the time of a version has no time zone; give an aware datetime")
    files = _files_by_path(order.files)
    with place.begin_put(claim) as put_in_progress:
        loaded = put_in_progress.newest()
        before = loaded.inventory if loaded else None
        if before is not None and (earlier := inventories.version_of_key(before, claim.key)) is not None:
            return _earlier_result(place, claim, before, earlier)
        state = inventories.state(before) if before else {}
        paths = set(state) | set(files) if order.merge else set(files)
        if not paths:
            raise NotAdmitted(f"{shown(claim.object_id)} would have no file at all; give at least one")
        require_apart(paths)  # OCFL 1.1 E095
        shape = inventories.next_shape(before, algorithm)
        put_in_progress.begin(shape)
        stock = _stock(put_in_progress, files, before, shape.algorithm)
        after = {**state, **stock.digests} if order.merge else stock.digests
        if before is not None and after == state:
            put_in_progress.forget()
            return Stored(version=before.head, changed=False, files=len(after), added_bytes=0)
        inventory = inventories.successor(
            before,
            shape,
            object_id=claim.object_id,
            state=after,
            added=stock.added,
            created=order.created,
            message=with_key(order.message, claim.key),
            user=user_block(order.user),
        )
        put_in_progress.commit(inventory, stock.added.keys())
    return Stored(
        version=1 if before is None else before.head + 1,
        changed=True,
        files=len(after),
        added_bytes=stock.added_bytes,
    )


def _files_by_path(files: Iterable[Incoming]) -> dict[str, Incoming]:
    """Return the files by their paths, their sums in canonical form. Raises NotAdmitted for an invalid path."""
    by_path: dict[str, Incoming] = {}
    for file in files:
        path = relative(file.path)
        if path in by_path:
            raise NotAdmitted(f"'{shown(path)}' is given twice; give each path once")
        checked = [digest(a, v) for a, v in file.sums.items()]
        by_path[path] = replace(file, sums={d.algorithm: d.value for d in checked})
    return by_path


@dataclass(slots=True, kw_only=True)
class _Stock:
    """The contents of the files of a put."""

    digests: dict[str, str] = field(default_factory=dict)
    """The digest that addresses the content of each file, by path."""
    added: dict[str, dict[str, str]] = field(default_factory=dict)
    """All sums of each content that the object did not have, by digest."""
    added_bytes: int = 0


def _stock(
    put_in_progress: Put, files: Mapping[str, Incoming], before: Inventory | None, algorithm: str
) -> _Stock:
    """Store the contents that the object does not have, each once. Those that it has are not read again, where their
    digest was given."""
    stock = _Stock()
    have = before.manifest.keys() if before else frozenset[str]()
    to_read: list[Incoming] = []
    to_read_digests: set[str] = set()
    for file in files.values():
        value = file.sums.get(algorithm)
        if value is None or (value not in have and value not in to_read_digests):
            to_read.append(file)
            to_read_digests.update([value] if value else [])
        else:
            with sources.opened(file):
                stock.digests[file.path] = value
    _compare_recorded(files, stock.digests, before)
    for file, result in zip(to_read, put_in_progress.keep(to_read, have), strict=True):
        stock.digests[file.path] = result.digest
        if not result.added:
            continue
        stock.added_bytes += 0 if result.digest in stock.added else result.size_bytes
        stock.added.setdefault(result.digest, {}).update(result.sums)
    return stock


def _compare_recorded(
    files: Mapping[str, Incoming], digests: Mapping[str, str], before: Inventory | None
) -> None:
    """Raise NotAdmitted where the given digests of content that is not read again contradict the recorded ones."""
    if before is None or not any(len(files[path].sums) > 1 for path in digests):
        return
    by_content = inventories.sums_by_content(before)
    for path, value in digests.items():
        if value in before.manifest:
            sources.compare_sums(files[path], by_content[before.manifest[value][0]])


def _earlier_result(place: Place, claim: Claim, inventory: Inventory, number: int) -> Stored:
    """Return what the put of the same key returned when it made this version."""
    size_of = place.sizes(claim.root)
    start = f"{inventory.name(number)}/"
    added = (p for places in inventory.manifest.values() for p in places if p.startswith(start))
    return Stored(
        version=number,
        changed=True,
        files=len(inventories.state(inventory, number)),
        added_bytes=sum(size_of(p) or 0 for p in added),
    )
