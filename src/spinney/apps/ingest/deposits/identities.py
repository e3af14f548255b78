"""The identity of a deposit's object: by its given ARK, by its local ids, or a new object.

The rules here read and decide; ``objects.processing`` writes, in an order in which nothing is minted or bound
twice.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Self

from spinney.apps.ingest.config.profiles import Profile
from spinney.apps.ingest.config.settings import Settings
from spinney.apps.ingest.identifiers import arks
from spinney.apps.ingest.identifiers.minters import Minter
from spinney.apps.ingest.inventory import Object
from spinney.apps.ingest.manifests import About
from spinney.apps.ingest.storage import Version
from spinney.errors import UsageError
from spinney.files.paths import NotAdmitted, shown

if TYPE_CHECKING:
    from spinney.apps.ingest.inventory.inventory import Inventory

_MESSAGE = re.compile(
    r"(?P<bid>bid-\S+) (?P<jid>jid-\S+)\n"
    r"submitter (?P<submitter>.+)\nowner (?P<owner>.+)\ncollection (?P<collection>.+)"
)


def identify(inventory: "Inventory", collection: str, about: About) -> str | None:
    """Return the ARK that is given or that the local ids are bound to; None: it has none yet, and one is to
    be minted.

    Local ids that are bound to nothing yet do not matter. Raises NotAdmitted where the given ARK and those of
    the local ids differ, or for an invalid ARK.
    """
    given_ark = None if about.primary_id is None else arks.canonical(about.primary_id)
    by_local_id = {local_id: inventory.ark_of(collection, local_id) for local_id in about.local_ids}
    bound_arks = {ark for ark in by_local_id.values() if ark is not None}
    if len(bound_arks) > 1:
        raise NotAdmitted(
            f"its local ids belong to different objects ({_bindings(by_local_id)}); correct the local ids "
            f"and submit it again"
        )
    if given_ark is not None and bound_arks not in (set(), {given_ark}):
        raise NotAdmitted(
            f"{given_ark} was given, but {_bindings(by_local_id)}; correct the primary id or the local ids, "
            f"and submit it again"
        )
    return given_ark or next(iter(bound_arks), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """The origin and owner of a stored version, in the message of the version in the storage; values without line
    breaks. A version is stored before it is recorded in the inventory: when its job is cancelled or fails in between,
    only the message shows its owner."""

    bid: str
    jid: str
    submitter: str
    owner: str
    collection: str

    def message(self) -> str:
        """Return the message of the version."""
        return "{bid} {jid}\nsubmitter {submitter}\nowner {owner}\ncollection {collection}".format(
            **asdict(self)
        )

    @classmethod
    def of(cls, message: str) -> Self | None:
        """Parse a message; None: another program wrote the version, or an early release of this service, so
        that the owner is unknown."""
        match = _MESSAGE.fullmatch(message)
        return None if match is None else cls(**match.groupdict())


def require_same_owner(
    recorded: Object | None, versions: Sequence[Version], profile: Profile, ark: str
) -> None:
    """Raise NotAdmitted when an object belongs to another owner: otherwise anyone who knows its ARK could add to it and
    read it. An object that is not in the inventory (``recorded`` None) may be stored, by a job that was cancelled
    before it recorded it; ``versions``: those that are stored.
    """
    owner = recorded or (Provenance.of(versions[-1].message) if versions else None)
    if owner is not None and (owner.collection, owner.owner) != (profile.collection, profile.owned_by):
        raise NotAdmitted(
            f"{ark} is of collection '{shown(owner.collection)}' and owner '{shown(owner.owner)}', not of this "
            f"profile's; deposit it there, or as another object"
        )


def minter(settings: Settings, profile: Profile, inventory: "Inventory") -> Minter:
    """Return the minter of a profile. Raises UsageError when the environment has no password for a service."""
    config = settings.minters[profile.minter]
    password = os.environ.get(config.password_variable, "")
    if config.url is not None and not password:
        raise UsageError(
            f"the environment has no {config.password_variable}, the password of {config.url}; set it and "
            f"start the nodes again"
        )
    return config.minter(lambda name, key: inventory.number(name, key) - 1, password)


def described(about: About) -> Mapping[str, str]:
    """Return the description for the minter's own record, without values that are not known."""
    description = {"who": about.creator, "what": about.title, "when": about.date}
    return {name: value for name, value in description.items() if value}


def _bindings(by_local_id: Mapping[str, str | None]) -> str:
    return ", ".join(
        f"'{shown(local_id)}' is {ark}" for local_id, ark in by_local_id.items() if ark is not None
    )
