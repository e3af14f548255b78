"""Where the service of a test keeps what it has: databases on SQLite or PostgreSQL, an archive on a disk or in S3."""

import json
from collections.abc import Iterable
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from uuid import uuid4

import boto3
import pytest

from long_tests import LONG
from spinney.apps.ingest.storage import Storage, open_storage
from spinney.apps.ingest.storage.layout import documents


class Kinds(NamedTuple):
    """Of places."""

    database: str
    """Of the store and of the inventory: ``sqlite`` or ``postgresql``."""
    storage: str
    """``disk`` or ``s3``."""


NEAR, FAR = Kinds("sqlite", "disk"), Kinds("postgresql", "s3")
ALL = (NEAR, FAR, Kinds("sqlite", "s3"), Kinds("postgresql", "disk"))


def at(*short: Kinds, long: Iterable[Kinds] = ALL) -> pytest.MarkDecorator:
    """Of these kinds is the service of a test in the short form, and of those in the long one."""
    return pytest.mark.parametrize("kinds", long if LONG else short, ids="-".join)


everywhere = at(NEAR, FAR)
"""For what may depend on the places. (Other tests are at all of them in the long form alone: see the fixture.)"""


def each(name: str, values: Iterable[Any], *, far: Any) -> pytest.MarkDecorator:
    """Each of these values of a parameter, of which the short form takes one far away."""
    cases = [*product(ALL, values)] if LONG else [*product([NEAR], values), (FAR, far)]
    return pytest.mark.parametrize(
        ("kinds", name), cases, ids=lambda value: "-".join(value) if isinstance(value, Kinds) else None
    )


on_disk = at(NEAR, long=[kinds for kinds in ALL if kinds.storage == "disk"])
"""For what only an archive on a disk has."""


class Bed(Protocol):
    """A storage root that a test may look into behind the storage's back; paths are below it."""

    kind: str
    url: str
    endpoint: str | None

    def open(self, **more: Any) -> Storage: ...

    def fetch(self) -> Path:
        """The root as a folder: itself, or a copy of what is in the bucket."""

    def read(self, path: str) -> bytes: ...

    def overwrite(self, path: str, raw: bytes | None) -> None:
        """Change a file, make it, or (None) remove it."""

    def open_to_all(self) -> None:
        """Let everybody read what is at the URLs of contents."""


class Disk:
    """See ``Bed``."""

    kind, endpoint = "disk", None

    def __init__(self, root: Path) -> None:
        self._root, self.url = root, str(root)

    def open(self, **more: Any) -> Storage:
        return open_storage(self._root, **more)

    def fetch(self) -> Path:
        return self._root

    def read(self, path: str) -> bytes:
        return (self._root / path).read_bytes()

    def overwrite(self, path: str, raw: bytes | None) -> None:
        if raw is None:
            (self._root / path).unlink()
        else:
            (self._root / path).parent.mkdir(parents=True, exist_ok=True)
            (self._root / path).write_bytes(raw)

    def open_to_all(self) -> None:
        """It is."""


class Bucket:
    """See ``Bed``. ``copies``: where copies go."""

    kind, _prefix = "s3", "archive/one"

    def __init__(self, endpoint: str, name: str, copies: Path) -> None:
        self.endpoint, self.url = endpoint, f"s3://{name}/{self._prefix}"
        self._name, self._copies = name, copies
        self._client = client(endpoint)
        self._opened: Storage | None = None

    def open(self, **more: Any) -> Storage:
        if more:
            return open_storage(self.url, endpoint=self.endpoint, **more)
        if self._opened is None:  # it keeps nothing between calls, and a client costs a tenth of a second
            self._opened = open_storage(self.url, endpoint=self.endpoint)
        return self._opened

    def fetch(self) -> Path:
        copy = self._copies / f"copy-{uuid4().hex}"
        copy.mkdir(parents=True)
        for page in self._client.get_paginator("list_objects_v2").paginate(Bucket=self._name):
            for one in page.get("Contents", ()):
                path = one["Key"].removeprefix(f"{self._prefix}/")
                (copy / path).parent.mkdir(parents=True, exist_ok=True)
                (copy / path).write_bytes(self.read(path))
        return copy

    def read(self, path: str) -> bytes:
        raw: bytes = self._client.get_object(Bucket=self._name, Key=f"{self._prefix}/{path}")["Body"].read()
        return raw

    def overwrite(self, path: str, raw: bytes | None) -> None:
        if raw is None:
            self._client.delete_object(Bucket=self._name, Key=f"{self._prefix}/{path}")
        else:
            self._client.put_object(Bucket=self._name, Key=f"{self._prefix}/{path}", Body=raw)

    def open_to_all(self) -> None:
        allowed = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject"}
        allowed["Resource"] = f"arn:aws:s3:::{self._name}/*"
        policy = {"Version": "2012-10-17", "Statement": [allowed]}
        self._client.put_bucket_policy(Bucket=self._name, Policy=json.dumps(policy))

    def empty(self) -> None:
        """All of it but what makes it a storage root."""
        kept = {f"{self._prefix}/{path}" for path in documents()}
        listed = self._client.list_objects_v2(Bucket=self._name).get("Contents", ())
        if keys := [{"Key": one["Key"]} for one in listed if one["Key"] not in kept]:
            self._client.delete_objects(Bucket=self._name, Delete={"Objects": keys})


def new_bucket(endpoint: str) -> str:
    """Its name."""
    name = f"b{uuid4().hex}"
    client(endpoint).create_bucket(Bucket=name)
    return name


def endpoint_of(request: pytest.FixtureRequest, kinds: Kinds) -> str | None:
    """The server of the fixture ``s3_server``, which is started when it is needed."""
    return request.getfixturevalue("s3_server") if kinds.storage == "s3" else None


@cache
def client(endpoint: str) -> Any:
    """A client of S3 for tests' own looks; to make one takes a tenth of a second."""
    return boto3.client("s3", endpoint_url=endpoint)


def as_settings(bed: Bed) -> str:
    """How settings name it."""
    endpoint = "" if bed.endpoint is None else f'endpoint = "{bed.endpoint}"\n'
    return f'[storage.main]\nurl = "{bed.url}"\n{endpoint}'
