"""The parameters of batches and objects, as stored in JSON.

They are written once, when a job is created, and never change: what stages find out is in the job's data and
results. Jobs live for years, so that a new field needs a default, and a field is never removed or given
another meaning. Fields with their default are not stored.
"""

import re
import uuid
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field

from spinney.apps.ingest.manifests import NOTHING, About, PayloadKind
from spinney.apps.settings_tables import validator, value_errors
from spinney.files.digests import Digest, digest
from spinney.files.paths import component, relative
from spinney.reports.addresses import mailbox

SUBMITTER_MAX_BYTES = 255
_NAMES = uuid.UUID("5b2c1f52-9c0f-4d3a-8f0c-6f2f0b1b7a11")
"""The namespace of the jids of objects (RFC 9562, version 5). It must never change."""
_UUID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
BID, JID = re.compile(f"bid-{_UUID}"), re.compile(f"jid-{_UUID}")
"""The names of batches and of objects."""
Bid = Annotated[str, Field(pattern=f"^{BID.pattern}$")]
Jid = Annotated[str, Field(pattern=f"^{JID.pattern}$")]


def _require_submitter(text: str) -> None:
    if not 0 < len(text.encode("utf-8", "surrogatepass")) <= SUBMITTER_MAX_BYTES:
        raise ValueError(
            f"a submitter has 1 to {SUBMITTER_MAX_BYTES} bytes, as the inventory keeps them; shorten it"
        )


FileName = Annotated[str, AfterValidator(validator(component))]
RelativePath = Annotated[str, AfterValidator(validator(relative))]
"""A path that leads downward only."""
NOTIFIED_MAX = 10
ADDRESS_MAX = 320
"""The maximum characters of an address with the name before it."""


def require_notified(addresses: Sequence[str]) -> None:
    """Raise ValueError unless reports may be sent to these addresses."""
    if len(addresses) > NOTIFIED_MAX:
        raise ValueError(
            f"{len(addresses)} addresses are to be notified, and at most {NOTIFIED_MAX} may be; name fewer"
        )
    for address in addresses:
        if len(address) > ADDRESS_MAX:
            raise ValueError(
                f"an address has {len(address)} characters, and {ADDRESS_MAX} are the most; shorten it"
            )
        mailbox(address)


@value_errors()
def _canonical(value: Digest) -> Digest:
    return digest(value.algorithm, value.value)


GivenDigest = Annotated[Digest, AfterValidator(_canonical)]
"""A digest that the depositor has given, in any notation that ``spinney.files.digests`` reads."""
Notified = Annotated[tuple[str, ...], AfterValidator(validator(require_notified))]
"""Mail addresses, each on one line (``spinney.reports.addresses``)."""
Submitter = Annotated[str, AfterValidator(validator(_require_submitter))]
Stage = Literal["estimating", "provisioning", "downloading", "processing", "recording", "notify"]
"""The stages of an object, in their order."""


class FrozenModel(BaseModel):
    """A value that never changes, with no other fields than its own."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Payload(FrozenModel):
    """The payload of one object: where it comes from, and what its depositor says of it."""

    kind: PayloadKind
    """``file``, ``container`` or ``object-manifest``."""
    url: str | None = None
    query: int | None = None
    """The place of the URL's query string in the batch's folder (``url_queries``)."""
    held: RelativePath | None = None
    """The path of the payload in the folder of the batch, instead of a URL."""
    name: RelativePath
    size_bytes: int | None = None
    """The size that the depositor gave, which the payload must have; None: none was given."""
    digest: GivenDigest | None = None
    """The digest that the depositor gave, which the payload must have; None: none was given."""
    mime_type: str | None = None
    modified: str | None = None
    """When it was last changed, as the depositor wrote it."""


class Order(FrozenModel):
    """What the parameters of a batch and of its objects have in common."""

    bid: Bid
    profile: str
    submitter: Submitter
    update: bool = False
    """Whether its files are added to those of the objects' newest versions; else they replace them."""
    about: About = NOTHING
    """The description of the object; for a batch, only where its payload is a single object."""
    response: str = "json"
    fail_at: Stage | None = None
    """For drills: each object fails once at this stage."""


class BatchOrder(Order):
    """A batch, as it was accepted: the parameter of its job."""

    kind: PayloadKind
    name: FileName
    """The payload's file name; the file is below ``incoming/<bid>`` until the batch takes it."""
    digest: GivenDigest | None = None
    notify: Notified = ()
    """Mail addresses that get its reports in addition to those of the profile."""
    accepted: AwareDatetime | None = None
    """When it was submitted; None: unknown."""


class ObjectOrder(Order):
    """An object of a batch: the parameter of its job."""

    jid: Jid
    payload: Payload
    until: Stage | None = None
    """The stage at which another service goes on with the object; None: all of it is done here."""
    returns: bool = False
    """Whether that service does one step only: the object waits at ``until``, held, and then goes on."""


def new_bid() -> str:
    """Return the name of a new batch."""
    return f"bid-{uuid.uuid4()}"


def jid(bid: str, number: int) -> str:
    """Return the jid of the object with this number in its batch, from 1.

    It is computed and not drawn at random, so that a stage that is killed and reads the payload again names
    every object as before.
    """
    return f"jid-{uuid.uuid5(_NAMES, f'{bid}/{number}')}"
