"""What only S3 can do to a put: large files in parts, services that lack or refuse something."""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import boto3
import pytest

from apps.ingest.places import Bed
from apps.ingest.storage.judge import ARK, at_rest, contents, incoming, is_stored, put
from apps.ingest.storage.moody import moody
from long_tests import long_alone
from spinney.apps.ingest.storage import NotThere, open_storage
from spinney.apps.ingest.storage.s3 import bucket as buckets
from spinney.files.paths import NotAdmitted


def test_a_large_file_goes_up_in_parts_and_comes_back(s3: Bed, tmp_path: Path) -> None:
    raw = os.urandom((8 << 20) + 12345)
    steps: list[str] = []
    storage = s3.open(on_step=steps.append)
    put(storage, incoming(tmp_path, "large", raw, "md5"))
    assert steps.count("part") == 2
    with storage.opened(ARK, next(storage.files(ARK))) as file:
        assert hashlib.file_digest(file, "sha256").digest() == hashlib.sha256(raw).digest()
    assert storage.verify(ARK).faults == ()
    assert at_rest(s3.fetch())


def test_a_large_file_that_is_not_what_was_promised_never_comes_to_be(
    s3: Bed, tmp_path: Path, s3_server: str
) -> None:
    storage = s3.open()
    with pytest.raises(NotAdmitted, match="the sha512 of 'large' should be"):
        put(storage, incoming(tmp_path, "large", b"x" * (9 << 20), sha512="0" * 128))
    assert not is_stored(storage)
    assert list(s3.fetch().glob("**/content/*")) == []
    client: Any = boto3.client("s3", endpoint_url=s3_server)
    for bucket in client.list_buckets()["Buckets"]:
        assert not client.list_multipart_uploads(Bucket=bucket["Name"]).get("Uploads")


def test_a_service_without_conditional_writes(s3: Bed, tmp_path: Path, s3_server: str, bucket: str) -> None:
    refused = []

    def lacking(method: str, path: str, headers: Mapping[str, str]) -> int | None:
        if method == "PUT" and {"If-Match", "If-None-Match"} & set(headers):
            refused.append(path)
            return 501
        return None

    with moody(s3_server, before=lacking) as endpoint:
        storage = open_storage(f"s3://{bucket}/archive/one", endpoint=endpoint)
        put(storage, incoming(tmp_path, "a", b"1"), key="one")
        put(storage, incoming(tmp_path, "b", b"2"), key="two")
    assert refused
    assert contents(s3.open()) == {"b": b"2"}
    assert at_rest(s3.fetch())


@pytest.mark.parametrize("did_it", [True, pytest.param(False, marks=long_alone)])
def test_a_service_that_refuses_the_inventory_that_counts(
    s3: Bed, tmp_path: Path, s3_server: str, bucket: str, did_it: bool
) -> None:
    """When nobody knows whether the service has done it, nothing that the version needs may be removed."""
    put(s3.open(), incoming(tmp_path, "a", b"1"), key="one")

    def refusing(method: str, path: str, headers: Mapping[str, str]) -> int | None:
        return 403 if method == "PUT" and path.endswith("fk4abc/inventory.json") else None

    more = incoming(tmp_path, "b", b"2")
    with moody(s3_server, **{"after" if did_it else "before": refusing}) as endpoint:
        storage = open_storage(f"s3://{bucket}/archive/one", endpoint=endpoint)
        with pytest.raises(OSError, match=r"refused writing .*inventory\.json \(403\); try again"):
            put(storage, more, key="two")
    assert contents(s3.open()) == ({"b": b"2"} if did_it else {"a": b"1"})
    put(s3.open(), more, key="two")
    assert [v.key for v in s3.open().versions(ARK)] == ["one", "two"]
    assert at_rest(s3.fetch())


def test_a_bucket_that_is_not_there_is_named_and_no_secret_told(s3: Bed, s3_server: str) -> None:
    with pytest.raises(NotThere, match="the bucket 'nowhere-at-all' does not answer") as refusal:
        open_storage("s3://nowhere-at-all/x", endpoint=s3_server)
    assert "secret-of-tests" not in f"{refusal.value!r} {refusal.value.__context__!r}"


def test_a_service_that_is_out_of_order_says_nothing_of_its_bucket(
    s3_server: str, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buckets, "_TRIES", 1)
    with (
        moody(s3_server, before=lambda *_: 503) as endpoint,
        pytest.raises(OSError, match=r"\(503\); try again later"),
    ):
        open_storage(f"s3://{bucket}/archive", endpoint=endpoint)
