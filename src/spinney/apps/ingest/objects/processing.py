"""The stage that unpacks, identifies, describes and stores an object."""

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from spinney import Defer, Job, Warn
from spinney.apps.ingest import fetch
from spinney.apps.ingest.admission import admission
from spinney.apps.ingest.config import open_resources
from spinney.apps.ingest.deposits import identities, metadata
from spinney.apps.ingest.deposits.identities import Provenance
from spinney.apps.ingest.deposits.orders import ObjectOrder
from spinney.apps.ingest.inventory import LocalIdTaken, Object, entry_rules
from spinney.apps.ingest.manifests import NOTHING, About, PayloadKind
from spinney.apps.ingest.objects import recorded_files
from spinney.apps.ingest.objects.provisioning import promise
from spinney.apps.ingest.objects.unpacked_content import modified, unpacked, warning
from spinney.apps.ingest.objects.work import (
    FETCHED,
    PAYLOAD,
    STORED,
    WANTED,
    Work,
    load_work,
    read_list,
    write_list,
)
from spinney.apps.ingest.storage import (
    Busy,
    Incoming,
    Late,
    NoSuchObject,
    Storage,
    Stored,
    StoredFile,
    Version,
)
from spinney.files.paths import PRODUCER, SYSTEM, NotAdmitted

ERC, DUBLIN_CORE = "mrt-erc.txt", "mrt-dc.xml"
_ERC_MAX_BYTES = 1 << 20
MINTED, REFUSED = "minted", "minted in vain"
"""Entries of the job's data: the ARK that was minted last, which is shown unless there is an "ark"; and how many minted
ARKs belonged to other objects already."""
UNCHANGED = "unchanged"
"""The entry of the job's data with the last content that the object had already: the key of this content, and that of
the put that made the version with it."""
TAKEN_S = 0.1
BUSY_S = 10.0
"""How long an object waits while another writer, which should not exist, is writing it to the storage."""


def processing(job: Job, order: ObjectOrder) -> dict[str, Any]:
    """Give the object its ARK and its descriptions, and store it as a new version. The value has what ``recording``
    enters in the inventory (``_value``)."""
    work = load_work(job, order)
    # The download is recorded, so that only an operator's request repeats it; a source may have changed by then.
    fetch.forget(work.folder / PAYLOAD)
    with admission():
        content = _content(work)
        about = _about(work, content)
        ark, is_minted = _identify(work, about)
        # Waiting for the lock repeats nothing above: the ARK is kept, the content is whole. The lock is kept until the
        # object is recorded, so that no other job finds an object in the storage whose owner is not recorded.
        job.lock(ark_lock(ark), until="job")
        recorded = work.inventory.object(ark)
        if not is_minted:
            _require_still_identified(work, about, recorded, ark)
        # An object stays where it is, since its next version is stored as a change of the last one.
        storage_name = work.profile.storage if recorded is None else recorded.head.storage
        storage = open_resources.storage(work.settings, storage_name)
        about = replace(about, primary_id=ark)
        # The key of what was deposited, since what an update takes over depends on the number of its version.
        deposited_key = _key(work, _files(content, _titled(work, about)))
        versions = _versions(storage, ark)
        put_key = _put_key(work, deposited_key, versions)
        number = next((v.number for v in versions if v.key == put_key), len(versions) + 1)
        about = _titled(work, _completed(work, about, recorded, number))
        files = _files(content, about)
        if not (is_minted and _is_new(work, recorded, versions, ark)):
            identities.require_same_owner(recorded, versions, work.profile, ark)
            _require_new_number(work, recorded, versions, files)
        with _bound(work, about, _new_local_ids(about, recorded, versions)):
            stored = _put(work, storage, ark, files, put_key)
        if not stored.changed:
            job.data[UNCHANGED] = [deposited_key, versions[stored.version - 1].key]
        value = _value(work, storage, about, ark, stored) | {"storage": storage_name}
    if (message := warning(work)) is not None:
        raise Warn(message, value=value)
    return value


def ark_lock(ark: str) -> str:
    """Return the name of the lock under which an object is written to storage and inventory, one job at a time.

    It is a hash, since names of locks cannot contain a slash.
    """
    return f"ark:{hashlib.sha256(ark.encode()).hexdigest()[:32]}"


def _content(work: Work) -> list[Incoming]:
    """Return the depositor's files, with their sizes and digests; a container is unpacked for them.

    After that no more space is needed, so that the promise of it is released.
    """
    fetched = list(read_list(work.folder / FETCHED, "downloading"))
    if work.order.payload.kind is not PayloadKind.CONTAINER:
        return [
            Incoming(
                path=r["name"], source=work.folder / PAYLOAD / r["name"], size_bytes=r["size"], sums=r["sums"]
            )
            for r in fetched
        ]
    content = unpacked(work, fetched[0])
    promise(work, 0)
    return content


def _about(work: Work, content: list[Incoming]) -> About:
    """Return the description of the order, with what it lacks from the depositor's own ``mrt-erc.txt``."""
    erc_file = next((f.source for f in content if f.path == ERC and isinstance(f.source, Path)), None)
    erc = NOTHING if erc_file is None else metadata.read_erc(erc_file, _ERC_MAX_BYTES)
    from_erc = asdict(erc)
    about = About(**{name: value or from_erc[name] for name, value in asdict(work.order.about).items()})
    # Checked before storing, since everything that is stored must be recordable.
    for field in ("creator", "title", "date"):
        entry_rules.plain(field, getattr(_titled(work, about), field) or "")
    return about


def _titled(work: Work, about: About) -> About:
    """Return a description with a title: that of the payload where there is no other."""
    return replace(about, title=about.title or work.order.payload.name)


def _completed(work: Work, about: About, recorded: Object | None, number: int) -> About:
    """Return the description of an update, with what it lacks from the version before ``number``, which it makes.

    A version that was made before, or that the storage has lost, is described as it was then, whatever later ones have
    changed; only their local ids are taken over, since versions have none of their own.
    """
    if not work.order.update or recorded is None:
        return about
    about = replace(about, local_ids=tuple(dict.fromkeys((*about.local_ids, *recorded.local_ids))))
    earlier = [version for version in recorded.versions if version.version < number]
    if not earlier:
        return about
    before = earlier[-1]
    return replace(
        about,
        creator=about.creator or before.who,
        title=about.title or before.what,
        date=about.date or before.when,
    )


def _identify(work: Work, about: About) -> tuple[str, bool]:
    """Return the object's ARK, and whether it was minted for this object.

    The ARK is given, found by a local id, minted by an earlier attempt, or minted now; it is kept at once.
    """
    data = work.job.data.snapshot()
    # What is kept as "ark" is only shown: the local id that led to it may be free again by now.
    ark = identities.identify(work.inventory, work.profile.collection, about) or data.get(MINTED)
    if ark is None:
        refused = data.get(REFUSED, 0)
        key = f"{work.order.jid}.{refused}" if refused else work.order.jid
        ark = identities.minter(work.settings, work.profile, work.inventory).mint(
            key, identities.described(_titled(work, about))
        )
        work.job.data[MINTED] = data[MINTED] = ark  # before all else: no other may be minted for it
    if ark != (data.get("ark") or data.get(MINTED)):
        work.job.data["ark"] = ark
    return ark, data.get(MINTED) == ark


def _require_still_identified(work: Work, about: About, recorded: Object | None, ark: str) -> None:
    """Raise Defer where the local id that led to a recorded object was bound to it only by a deposit that has been
    refused since: this one would become a version of an object that never had its local id."""
    if (
        about.primary_id is not None
        or recorded is None
        or not set(about.local_ids).isdisjoint(recorded.local_ids)
    ):
        return
    if identities.identify(work.inventory, work.profile.collection, about) != ark:
        raise Defer(TAKEN_S, f"its local ids do not belong to {ark} any more; they are looked up again")


def _versions(storage: Storage, ark: str) -> list[Version]:
    """Return the versions of an object in the storage, oldest first; none where it has no such object."""
    try:
        return storage.versions(ark)
    except NoSuchObject:
        return []


def _is_new(work: Work, recorded: Object | None, versions: list[Version], ark: str) -> bool:
    """Return whether there is no object yet under an ARK that was minted for this object.

    There may be one, for depositors may give any ARK, also one that is yet to be minted. Such an ARK stays with that
    object, and Defer is raised to mint another: this object would be stored as the next version of that one.
    """
    jids = _deposited_by(recorded, versions)
    if jids is None:
        return True
    if work.order.jid in jids or "processing" in work.job.results:
        return False
    data = work.job.data
    data[REFUSED] = data.get(REFUSED, 0) + 1
    data.pop("ark", None)
    del data[MINTED]
    raise Defer(
        TAKEN_S, f"{ark} was minted, but somebody has deposited an object under it; another is minted"
    )


def _deposited_by(recorded: Object | None, versions: list[Version]) -> list[str] | None:
    """Return the jid (or what is recorded in its place) of each version of an object, from the storage or else from the
    inventory; None: there is no such object."""
    if versions:
        return [(version.key or "").partition(".")[0] for version in versions]
    # Lost from the storage, if it is recorded.
    return None if recorded is None else [version.job_id for version in recorded.versions]


def _require_new_number(
    work: Work, recorded: Object | None, versions: list[Version], files: list[Incoming]
) -> None:
    """Raise NotAdmitted where the storage has lost recorded versions, and would give the number of one of them to other
    content. What made the lost version may make it again."""
    if recorded is None or recorded.head.version <= len(versions):
        return
    ark, number = recorded.ark, len(versions) + 1
    lost = next((version for version in recorded.versions if version.version == number), None)
    if (
        lost is not None
        and lost.job_id == work.order.jid
        and recorded_files.is_content_of(files, work.inventory.files(ark, number), merge=work.order.update)
    ):
        return
    stored = f"only version {len(versions)}" if versions else "none"
    if lost is None:
        again = ""
    elif lost.job_id == work.order.jid:
        again = f" (this object made version {number}, with other files, descriptions or local ids than now)"
    else:
        again = f", or requeue {lost.job_id} of {lost.batch_id}, which made version {number}"
    raise NotAdmitted(
        f"the inventory has version {recorded.head.version} of {ark}, and the storage has {stored}; restore the object "
        f"there from a newer copy{again}, and then requeue this one"
    )


def _new_local_ids(about: About, recorded: Object | None, versions: list[Version]) -> list[str]:
    """Return the local ids that no version of the object has; none where the inventory does not know the versions.
    Under the lock on the ARK nobody else binds to it."""
    if recorded is None:
        return [] if versions else list(about.local_ids)
    return [name for name in about.local_ids if name not in recorded.local_ids]


@contextmanager
def _bound(work: Work, about: About, new: list[str]) -> Iterator[None]:
    """Bind the local ids to the ARK while its version is stored; the ``new`` ones are free again if it is refused.
    Otherwise the next deposit with one of them would be taken for a version of this object. Raises Defer where another
    object was quicker.

    They stay bound after an OSError, since the version may be stored then.
    """
    assert about.primary_id is not None
    try:
        work.inventory.bind(work.profile.collection, about.local_ids, about.primary_id)
    except LocalIdTaken as error:
        # Another object was bound since the lookup; the next attempt makes this one a version of that, or refuses it.
        raise Defer(TAKEN_S, str(error)) from error
    try:
        yield
    except Late:  # a newer attempt of this job stores the version, and needs them
        raise
    except (NotAdmitted, Defer):
        if new:
            work.inventory.unbind(work.profile.collection, new, about.primary_id)
        raise


def _put(work: Work, storage: Storage, ark: str, files: list[Incoming], key: str) -> Stored:
    """Store the version, and return it. Idempotent by ``key``."""
    try:
        return storage.put(
            ark,
            files,
            key=key,
            message=_provenance(work).message(),
            user=work.order.submitter,
            created=datetime.now(UTC),
            merge=work.order.update,
            fence=work.job.fence,
        )
    except Busy as error:
        raise Defer(BUSY_S, str(error)) from error


def _provenance(work: Work) -> Provenance:
    return Provenance(
        bid=work.order.bid,
        jid=work.order.jid,
        submitter=work.order.submitter,
        owner=work.profile.owned_by,
        collection=work.profile.collection,
    )


def _value(work: Work, storage: Storage, about: About, ark: str, stored: Stored) -> dict[str, Any]:
    """List the version's files for `recording`, and return the stage's value.

    It describes the stored version as the inventory records it. Where this job had nothing new, that is the version of
    an earlier job (``own`` False).
    """
    version, stored_files = storage.version(ark, stored.version)
    _list_stored(work, stored_files)
    return {
        "ark": ark,
        "version": stored.version,
        "files": stored.files,
        "added_bytes": stored.added_bytes,
        "created": version.created.isoformat(),
        "own": (version.key or "").startswith(f"{work.order.jid}."),
        "by": asdict(Provenance.of(version.message) or _provenance(work)),
        "collection": work.profile.collection,
        "owner": work.profile.owned_by,
        "who": about.creator,
        "what": about.title,
        "when": about.date,
        "local_ids": list(about.local_ids),
    }


def _list_stored(work: Work, files: Iterable[StoredFile]) -> None:
    """Write the list of the version's files for ``recording``, with the type and date that the depositor
    gave.

    Those of a container have the dates of its members. Files of an update that the deposit does not contain
    have neither here; ``recording`` takes them from the version before.
    """
    rows = list(read_list(work.folder / WANTED, "estimating"))
    types = {f"{PRODUCER}/{r['name']}": r["mime_type"] for r in rows}
    is_container = work.order.payload.kind is PayloadKind.CONTAINER
    dates = modified(work) if is_container else {r["name"]: r.get("modified") for r in rows}
    listed = (
        {
            "path": f.path,
            "size": f.size_bytes,
            "mime_type": types.get(f.path),
            "sums": dict(f.sums),
            "modified": dates.get(f.path.removeprefix(f"{PRODUCER}/"))
            if f.path.startswith(PRODUCER)
            else None,
        }
        for f in files
    )
    write_list(work.folder / STORED, listed, sync=work.syncs)


def _files(content: list[Incoming], about: About) -> list[Incoming]:
    """Return the files of the version: the depositor's, and ERC and Dublin Core, which describe the object."""
    files = [replace(file, path=f"{PRODUCER}/{file.path}") for file in content]
    for name, text in ((ERC, metadata.erc(about).encode()), (DUBLIN_CORE, metadata.dublin_core(about))):
        files.append(Incoming(path=f"{SYSTEM}/{name}", source=text, size_bytes=len(text)))
    return files


def _put_key(work: Work, key: str, versions: list[Version]) -> str:
    """Return the key of the put of this content.

    It is ``key``, or that of the last version that this job made of this content or found with it, except where the job
    was requeued with other content since, and no other job has made a version after it: then the content is to be the
    newest again, and the key has a suffix. After a version of another job it stays as it is, since requeuing a batch
    does not take back later deposits.
    """
    if not versions:
        return key
    unchanged, existing_key = work.job.data.get(UNCHANGED) or ("", None)
    keys = {key, existing_key} if unchanged == key else {key}
    same = [v for v in versions if v.key is not None and (v.key in keys or v.key.startswith(f"{key}."))]
    if not same:
        return key
    last = same[-1]
    later = versions[versions.index(last) + 1 :]
    if later and all((v.key or "").startswith(f"{work.order.jid}.") for v in later):
        return f"{key}.{versions[-1].number + 1}"
    return last.key or key


def _key(work: Work, files: list[Incoming]) -> str:
    """Return a key that is the same for the same content of the same job, so that a repeated stage finds its
    version."""
    in_order = sorted(files, key=lambda file: file.path)
    content = "\n".join(f"{f.path}\t{f.size_bytes}\t{f.sums.get('sha256', '')}" for f in in_order)
    return f"{work.order.jid}.{hashlib.sha256(content.encode()).hexdigest()[:16]}"
