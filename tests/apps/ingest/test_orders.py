"""What may be submitted."""

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from spinney.apps.ingest import app
from spinney.apps.ingest.deposits import orders
from spinney.apps.ingest.deposits.orders import BatchOrder, ObjectOrder
from spinney.files.digests import Digest
from spinney.model.subjects import subject

BID = "bid-00000000-0000-4000-8000-000000000001"
OBJECT = {"jid": orders.jid(BID, 1), "bid": BID, "profile": "maps", "submitter": "ann"}
PAYLOAD = {"kind": "file", "url": "http://example.org/x", "name": "x"}


def test_an_objects_number_gives_it_the_same_name_for_ever() -> None:
    assert orders.jid(BID, 7) == orders.jid(BID, 7)
    assert len({orders.jid(BID, n) for n in range(100)} | {orders.jid(orders.new_bid(), 7)}) == 101


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "", "a/../../b", "x" * 256, "a\0b"])
def test_no_name_leads_out_of_a_folder(name: str) -> None:
    with pytest.raises(ValidationError):
        ObjectOrder.model_validate({**OBJECT, "payload": {**PAYLOAD, "name": name}})
    with pytest.raises(ValidationError):
        ObjectOrder.model_validate({**OBJECT, "payload": {"kind": "file", "name": "x", "held": name}})
    with pytest.raises(ValidationError):
        BatchOrder.model_validate({**_batch(), "name": name})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("fail_at", "nowhere"),
        ("submitter", ""),
        ("submitter", "é" * 128),
        ("kind", "tape"),
        ("bid", "bid-1"),
        ("bid", "../x"),
        ("digest", {"algorithm": "rot13", "value": "0"}),
        ("digest", {"algorithm": "md5", "value": "0"}),
        ("other", 1),
    ],
)
def test_what_cannot_be_meant_is_refused(key: str, value: Any) -> None:
    BatchOrder.model_validate(_batch())
    with pytest.raises(ValidationError):
        BatchOrder.model_validate({**_batch(), key: value})


def test_a_digest_may_be_written_as_other_tools_write_it() -> None:
    written = {"algorithm": "SHA-256", "value": "AB" * 32}

    of_batch = BatchOrder.model_validate({**_batch(), "digest": written})
    of_object = ObjectOrder.model_validate({**OBJECT, "payload": {**PAYLOAD, "digest": written}})

    assert of_batch.digest == of_object.payload.digest == Digest("sha256", "ab" * 32)


def _batch() -> dict[str, Any]:
    return {"bid": BID, "profile": "maps", "kind": "file", "name": "x", "submitter": "ann"}


def test_lists_tell_batches_and_objects_apart() -> None:
    assert _subject("ingest.batch", BatchOrder.model_validate(_batch())) == f"x · {BID}"
    one = ObjectOrder.model_validate({**OBJECT, "payload": {**PAYLOAD, "name": "maps/1.tif"}})
    assert _subject("ingest.object", one) == f"maps/1.tif · {one.jid}"


def _subject(type_: str, order: BaseModel) -> str:
    return subject(app.types[type_].spec, {"order": order.model_dump(mode="json")})
