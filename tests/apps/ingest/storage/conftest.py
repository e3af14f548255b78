"""Real places: a folder, and a bucket in moto's own HTTP server; each made anew for a test."""

import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import pytest
from moto.server import ThreadedMotoServer

from longer import long_alone
from spinney.apps.ingest.storage import Storage, open_storage


@dataclass(frozen=True, slots=True, kw_only=True)
class Bed:
    """A storage root that a test may look into behind the storage's back."""

    kind: str
    open: Callable[..., Storage]
    fetch: Callable[[], Path]
    """The root as a folder: itself, or a copy of what is in the bucket."""
    overwrite: Callable[[str, bytes | None], None]
    """Change or (None) remove a file by its path below the root."""


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in os.environ if n.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDOFTESTS")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-of-tests")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture
def disk(tmp_path: Path) -> Bed:
    root = tmp_path / "root"

    def overwrite(path: str, raw: bytes | None) -> None:
        if raw is None:
            (root / path).unlink()
        else:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(raw)

    return Bed(kind="disk", open=lambda **more: open_storage(root, **more), fetch=lambda: root, overwrite=overwrite)


@pytest.fixture
def bucket(s3_server: str, aws: None) -> str:
    name = f"b{uuid4().hex}"
    boto3.client("s3", endpoint_url=s3_server).create_bucket(Bucket=name)
    return name


@pytest.fixture
def s3(tmp_path: Path, s3_server: str, bucket: str) -> Bed:
    client: Any = boto3.client("s3", endpoint_url=s3_server)
    prefix = "archive/one"

    def fetch() -> Path:
        copy = tmp_path / f"copy-{uuid4().hex}"
        copy.mkdir()
        for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket):
            for one in page.get("Contents", ()):
                target = copy / one["Key"].removeprefix(f"{prefix}/")
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(client.get_object(Bucket=bucket, Key=one["Key"])["Body"].read())
        return copy

    def overwrite(path: str, raw: bytes | None) -> None:
        if raw is None:
            client.delete_object(Bucket=bucket, Key=f"{prefix}/{path}")
        else:
            client.put_object(Bucket=bucket, Key=f"{prefix}/{path}", Body=raw)

    plain: list[Storage] = []

    def open_(**more: Any) -> Storage:
        if not more and plain:  # it keeps nothing between calls, and a client costs a tenth of a second
            return plain[0]
        opened = open_storage(f"s3://{bucket}/{prefix}", endpoint=s3_server, **more)
        plain.extend([] if more else [opened])
        return opened

    return Bed(
        kind="s3",
        open=open_,
        fetch=fetch,
        overwrite=overwrite,
    )


@pytest.fixture(params=["disk", pytest.param("s3", marks=long_alone)])
def either(request: pytest.FixtureRequest) -> Bed:
    """For what does not depend on the place: in S3 only when there is time."""
    found: Bed = request.getfixturevalue(request.param)
    return found


@pytest.fixture(params=["disk", "s3"])
def bed(request: pytest.FixtureRequest) -> Bed:
    found: Bed = request.getfixturevalue(request.param)
    return found
