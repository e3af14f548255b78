"""Which object a deposit is: by the ARK that it gives, by its local ids, or a new one."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from spinney.apps.ingest.config.profiles import Profile
from spinney.apps.ingest.config.settings import Settings
from spinney.apps.ingest.deposits.metadata import About
from spinney.apps.ingest.deposits.provenance import Provenance
from spinney.apps.ingest.files.paths import NotAdmitted, shown
from spinney.apps.ingest.identifiers import arks
from spinney.apps.ingest.identifiers.ezid import EzidMinter
from spinney.apps.ingest.identifiers.minters import LocalMinter, Minter
from spinney.apps.ingest.storage import NoSuchObject, Storage
from spinney.errors import UsageError

if TYPE_CHECKING:
    from spinney.apps.ingest.inventory import Inventory


def identify(inventory: "Inventory", collection: str, about: About) -> str | None:
    """The ARK that is given or that the local ids are bound to; None: it has none yet. Raises NotAdmitted where these
    say different things."""
    given = None if about.ark is None else arks.canonical(about.ark)
    known = {local_id: inventory.ark_of(collection, local_id) for local_id in about.local_ids}
    found = {ark for ark in known.values() if ark is not None}
    if len(found) > 1:
        raise NotAdmitted(
            f"its local ids belong to different objects ({_told(known)}); mend the local ids and submit it again"
        )
    if given is not None and found and not arks.same(given, next(iter(found))):
        raise NotAdmitted(
            f"{given} was given, but {_told(known)}; mend the primary id or the local ids, and submit it again"
        )
    return given or next(iter(found), None)


def require_same_owner(inventory: "Inventory", storage: Storage, profile: Profile, ark: str) -> None:
    """Raise NotAdmitted when an object is another's: whoever knows an ARK could else add to it, and read what is in it.
    What the inventory does not know may be stored nevertheless, by somebody who was cancelled before it was recorded.
    """
    known = next(iter(inventory.find(ark=ark, limit=1)), None) or _stored_by(storage, ark)
    if known is not None and (known.collection, known.owner) != (profile.collection, profile.owned_by):
        raise NotAdmitted(
            f"{ark} is of collection '{shown(known.collection)}' and owner '{shown(known.owner)}', not of this "
            f"profile's; deposit it there, or as another object"
        )


def _stored_by(storage: Storage, ark: str) -> Provenance | None:
    try:
        return Provenance.of(storage.versions(ark)[-1].message)
    except NoSuchObject:
        return None


def minter(settings: Settings, profile: Profile, inventory: "Inventory") -> Minter:
    """Who mints for this profile. Raises UsageError when the environment has no password for a service."""
    found = settings.minters[profile.minter]
    if found.url is None:
        return LocalMinter(
            naan=found.naan,
            shoulder=found.shoulder,
            template=found.template,
            number=lambda name, key: inventory.number(name, key) - 1,
        )
    password = os.environ.get(found.password_variable)
    if not password:
        raise UsageError(
            f"the environment has no {found.password_variable}, the password of {found.url}; set it and "
            f"start the nodes again"
        )
    return EzidMinter(
        url=found.url, shoulder=f"ark:/{found.naan}/{found.shoulder}", user=found.user, password=password
    )


def described(about: About) -> Mapping[str, str]:
    """For the minter's own record."""
    told = {"who": about.who, "what": about.what, "when": about.when}
    return {name: value for name, value in told.items() if value}


def _told(known: Mapping[str, str | None]) -> str:
    return ", ".join(f"'{shown(local_id)}' is {ark}" for local_id, ark in known.items() if ark is not None)
