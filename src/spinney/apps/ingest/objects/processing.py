"""Unpacked, identified, described, stored."""

import hashlib
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spinney import Defer, Job, Warn
from spinney.apps.ingest.admission import admission
from spinney.apps.ingest.config import open_resources, storage_targets
from spinney.apps.ingest.deposits import identities, metadata
from spinney.apps.ingest.deposits.metadata import About
from spinney.apps.ingest.deposits.orders import ObjectOrder
from spinney.apps.ingest.deposits.provenance import Provenance
from spinney.apps.ingest.files.paths import PRODUCER, SYSTEM
from spinney.apps.ingest.inventory import LocalIdTaken, entry_rules
from spinney.apps.ingest.manifests import PayloadKind
from spinney.apps.ingest.objects.provisioning import release
from spinney.apps.ingest.objects.unpacked_content import modified, unpacked, warning
from spinney.apps.ingest.objects.work import (
    FETCHED,
    PAYLOAD,
    STORED,
    WANTED,
    Work,
    read_list,
    work,
    write_list,
)
from spinney.apps.ingest.storage import Busy, Incoming, NoSuchObject

if TYPE_CHECKING:
    from spinney.apps.ingest.inventory import Inventory

ERC, DUBLIN_CORE = "mrt-erc.txt", "mrt-dc.xml"
_ERC_MAX_BYTES = 1 << 20
MINTED, REFUSED = "minted", "minted in vain"
"""Entries of the job's data: the ARK that was minted last, which counts unless there is an "ark"; and how many were
somebody else's."""
TAKEN_S = 0.1
BUSY_S = 10.0
"""How long an object rests when somebody else is at its place in the storage, who should not be."""


def processing(job: Job, order: ObjectOrder) -> dict[str, Any]:
    """Give the object its ARK and its descriptions, and store it as a new version."""
    at = work(job, order)
    with admission():
        content = _content(at)
        about = _about(at, content)
        inventory = open_resources.inventory(at.settings)
        ark, is_minted = _identified(at, inventory, about)
        # Nothing above is done twice: the ARK is kept, the content is whole. Kept until the object is recorded, so that
        # nobody finds it stored and does not know whose it is.
        job.lock(ark_lock(ark), until="job")
        if not (is_minted and _is_new(at, inventory, ark)):
            storage = storage_targets.standing(at.settings, at.profile.storage)
            identities.require_ours(inventory, storage, at.profile, ark)
        _bind(at, inventory, about, ark)
        value = _stored(at, content, replace(about, ark=ark), ark)
    if (said := warning(at)) is not None:
        raise Warn(said, value=value)
    return value


def ark_lock(ark: str) -> str:
    """Storage and inventory of an object are written by one at a time. A lock's name admits no slash."""
    return f"ark:{hashlib.sha256(ark.encode()).hexdigest()[:32]}"


def _content(at: Work) -> list[Incoming]:
    """The depositor's files with what is known of them."""
    fetched = list(read_list(at.folder / FETCHED, "downloading"))
    if at.order.payload.kind is not PayloadKind.CONTAINER:
        return [
            Incoming(
                path=r["name"], source=at.folder / PAYLOAD / r["name"], size_bytes=r["size"], sums=r["sums"]
            )
            for r in fetched
        ]
    content = unpacked(at, fetched[0])
    release(at)
    return content


def _about(at: Work, content: list[Incoming]) -> About:
    """What the order says, and where it is silent what the depositor's own ``mrt-erc.txt`` does."""
    given = at.order.about
    own = next((f.source for f in content if f.path == ERC and isinstance(f.source, Path)), None)
    erc = About() if own is None else metadata.read_erc(own, _ERC_MAX_BYTES)
    about = About(
        who=given.creator or erc.who,
        what=given.title or erc.what or at.order.payload.name,
        when=given.date or erc.when,
        ark=given.primary_id or erc.ark,
        local_ids=given.local_ids or erc.local_ids,
    )
    # Here, since what is stored must be recordable.
    for what, said in (("creator", about.who), ("title", about.what), ("date", about.when)):
        entry_rules.plain(what, said or "")
    return about


def _identified(at: Work, inventory: "Inventory", about: About) -> tuple[str, bool]:
    """The object's ARK: given, known by a local id, kept from an attempt before, or minted; kept the moment it is
    known. And whether it was minted for this object."""
    data = at.job.data.snapshot()
    kept: str | None = data.get("ark") or data.get(MINTED)
    ark = identities.identify(inventory, at.profile.collection, about) or kept
    if ark is None:
        refused = data.get(REFUSED, 0)
        key = f"{at.order.jid}.{refused}" if refused else at.order.jid
        ark = identities.minter(at.settings, at.profile, inventory).mint(key, identities.described(about))
        at.job.data[MINTED] = data[MINTED] = kept = ark  # before all else: no other may be minted for it
    if ark != kept:
        at.job.data["ark"] = ark
    return ark, data.get(MINTED) == ark


def _is_new(at: Work, inventory: "Inventory", ark: str) -> bool:
    """Whether there is nothing yet under an ARK that was minted for this object. It may be an object already, for
    depositors may give any ARK, one that is yet to be minted too. Such a one is left to that object, and another is
    minted: to this one it would be stored as the next version."""
    jids = _deposited_by(at, inventory, ark)
    if jids is None:
        return True
    if at.order.jid in jids or "processing" in at.job.results:
        return False
    data = at.job.data
    data[REFUSED] = data.get(REFUSED, 0) + 1
    data.pop("ark", None)
    del data[MINTED]
    raise Defer(
        TAKEN_S, f"{ark} was minted, but somebody has deposited an object under it; another is minted"
    )


def _deposited_by(at: Work, inventory: "Inventory", ark: str) -> list[str] | None:
    """The jid, or what stands in its place, of each version that the storage has of an object, or the inventory knows
    of; None: there is no such object."""
    try:
        found = storage_targets.standing(at.settings, at.profile.storage).versions(ark)
    except NoSuchObject:
        known = inventory.object(ark)  # in another storage, or lost from this one
        return None if known is None else [version.job_id for version in known.versions]
    return [(version.key or "").partition(".")[0] for version in found]


def _bind(at: Work, inventory: "Inventory", about: About, ark: str) -> None:
    try:
        inventory.bind(at.profile.collection, about.local_ids, ark)
    except LocalIdTaken as error:
        # Another object came first since we looked; looked at again, this one is a version of that, or refused.
        raise Defer(TAKEN_S, str(error)) from error


def _stored(at: Work, content: list[Incoming], about: About, ark: str) -> dict[str, Any]:
    files = [replace(file, path=f"{PRODUCER}/{file.path}") for file in content] + _described(about)
    storage = storage_targets.standing(at.settings, at.profile.storage)
    ours = Provenance(
        bid=at.order.bid,
        jid=at.order.jid,
        submitter=at.order.submitter,
        owner=at.profile.owned_by,
        collection=at.profile.collection,
    )
    try:
        stored = storage.put(
            ark,
            files,
            key=_key(at, files),
            message=ours.message(),
            user=at.order.submitter,
            created=datetime.now(UTC),
            merge=at.order.update,
            fence=at.job.fence,
        )
    except Busy as error:
        raise Defer(BUSY_S, str(error)) from error
    wanted = list(read_list(at.folder / WANTED, "estimating"))
    types = {f"{PRODUCER}/{r['name']}": r["mime_type"] for r in wanted}
    is_container = at.order.payload.kind is PayloadKind.CONTAINER
    dates = modified(at) if is_container else {r["name"]: r.get("modified") for r in wanted}
    write_list(
        at.folder / STORED,
        (
            {
                "path": f.path,
                "size": f.size_bytes,
                "mime_type": types.get(f.path),
                "sums": dict(f.sums),
                "modified": dates.get(f.path.removeprefix(f"{PRODUCER}/"))
                if f.path.startswith(PRODUCER)
                else None,
            }
            for f in storage.files(ark, stored.version)
        ),
        sync=at.syncs,
    )
    made = next(v for v in storage.versions(ark) if v.number == stored.version)
    return {
        "ark": ark,
        "version": stored.version,
        "files": stored.files,
        "added_bytes": stored.added_bytes,
        "created": made.created.isoformat(),
        "own": (made.key or "").startswith(f"{at.order.jid}."),
        "by": asdict(Provenance.of(made.message) or ours),
        "storage": at.profile.storage,
        "collection": at.profile.collection,
        "owner": at.profile.owned_by,
        "who": about.who,
        "what": about.what,
        "when": about.when,
        "local_ids": list(about.local_ids),
    }


def _described(about: About) -> list[Incoming]:
    """The ERC and Dublin Core files."""
    texts = {ERC: metadata.erc(about).encode(), DUBLIN_CORE: metadata.dublin_core(about)}
    return [
        Incoming(path=f"{SYSTEM}/{name}", source=text, size_bytes=len(text)) for name, text in texts.items()
    ]


def _key(at: Work, files: list[Incoming]) -> str:
    """The same for the same content of the same job, so that a stage that runs again finds its version."""
    in_order = sorted(files, key=lambda file: file.path)
    told = "\n".join(f"{f.path}\t{f.size_bytes}\t{f.sums.get('sha256', '')}" for f in in_order)
    return f"{at.order.jid}.{hashlib.sha256(told.encode()).hexdigest()[:16]}"
