"""A prefix of an S3 bucket, in the few verbs that a storage needs. Errors are OSError, without secrets."""

import base64
import io
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO
from urllib.parse import quote

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from spinney.apps.ingest.files.disk_space import NoRoom
from spinney.apps.ingest.files.paths import shown
from spinney.apps.ingest.storage.contract import NotThere
from spinney.apps.ingest.storage.place import Document

DELETE_MAX = 1000
"""Keys that one request may delete."""
_TRIES = 5
_FULL = {"507", "InsufficientStorage", "QuotaExceeded", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded"}
"""Codes of services that have run full: the standard's, Ceph's and MinIO's. AWS never does."""
_CONNECT_S, _READ_S = 10, 60


class ServiceFailed(OSError):
    """The storage service did not do what it was asked; try again later, or mend its settings."""


class Overtaken(Exception):
    """A conditional write met another state than it was to meet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """An object of the bucket as a listing tells it."""

    path: str
    size_bytes: int
    tag: str


class Bucket:
    """Paths are below the prefix, '/' between their parts."""

    def __init__(self, client: Any, name: str, prefix: str) -> None:
        self._client, self.name = client, name
        self._prefix = f"{prefix}/" if prefix else ""
        self._conditional = True

    def url(self, path: str) -> str:
        """Of an object, by path."""
        return f"{self._client.meta.endpoint_url.rstrip('/')}/{self.name}/{quote(self._prefix + path)}"

    def get(self, path: str) -> Document | None:
        """A small object whole; None when it is not there."""
        with _asking(f"reading {path}"):
            try:
                told = self._client.get_object(**self._of(path))
            except ClientError as error:
                if _code(error) in ("NoSuchKey", "404"):
                    return None
                raise
            return Document(raw=told["Body"].read(), tag=told["ETag"])

    @contextmanager
    def stream(self, path: str) -> Iterator[BinaryIO | None]:
        """An object to be read once; None when it is not there."""
        with _asking(f"reading {path}"):
            try:
                body = self._client.get_object(**self._of(path))["Body"]
            except ClientError as error:
                if _code(error) not in ("NoSuchKey", "404"):
                    raise
                body = None
            if body is None:
                yield None
                return
            with io.BufferedReader(body, 1 << 20) as file:
                yield file

    def put(
        self, path: str, raw: bytes, *, tag: str | None = None, fresh: bool = False, sha256: str | None = None
    ) -> str:
        """Write an object, only over the state ``tag`` or (``fresh``) over nothing; answers its ETag.

        The service checks what it gets: by ``sha256`` (hexadecimal) when known, else by the CRC that the client
        adds. Raises Overtaken.
        """
        more: dict[str, str] = {"ChecksumSHA256": _base64(sha256)} if sha256 else {}
        condition: dict[str, str] = {"IfMatch": tag} if tag else {"IfNoneMatch": "*"} if fresh else {}
        with _asking(f"writing {path}"):
            try:
                return self._put(path, raw, {**more, **(condition if self._conditional else {})})
            except ClientError as error:
                if _code(error) in ("PreconditionFailed", "ConditionalRequestConflict", "412", "409"):
                    raise Overtaken(path) from None
                if not condition or _code(error) not in ("NotImplemented", "501"):
                    raise
                self._conditional = False
                return self._put(path, raw, more)

    def list(self, path: str) -> Iterator[Listed]:
        """Everything below ``path``, by the path below it."""
        start = f"{self._prefix}{path}/" if path else self._prefix
        with _asking(f"listing {path}"):
            pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self.name, Prefix=start)
            for page in pages:
                for one in page.get("Contents", ()):
                    yield Listed(path=one["Key"][len(start) :], size_bytes=one["Size"], tag=one["ETag"])

    def delete(self, paths: Iterable[str]) -> None:
        """Remove objects; what is not there is no error."""
        left = [{"Key": f"{self._prefix}{p}"} for p in paths]
        with _asking("deleting"):
            for start in range(0, len(left), DELETE_MAX):
                answer = self._client.delete_objects(
                    Bucket=self.name, Delete={"Objects": left[start : start + DELETE_MAX], "Quiet": True}
                )
                if answer.get("Errors"):
                    raise ServiceFailed(
                        f"the service would not delete {len(answer['Errors'])} objects; see its rights"
                    )

    def abandon_uploads(self, path: str) -> None:
        """End the uploads in parts below ``path`` that nobody completed; until then they are stored and paid for."""
        with _asking(f"listing the uploads below {path}"):
            pages = self._client.get_paginator("list_multipart_uploads").paginate(
                Bucket=self.name, Prefix=f"{self._prefix}{path}/"
            )
            for upload in [u for page in pages for u in page.get("Uploads", ())]:
                self._client.abort_multipart_upload(
                    Bucket=self.name, Key=upload["Key"], UploadId=upload["UploadId"]
                )

    def put_parts(self, path: str, parts: Iterable[bytes]) -> None:
        """Write a large object in parts. It comes to be after the last; raising in ``parts`` leaves none."""
        of = self._of(path)
        with _asking(f"writing {path}"):
            upload = self._client.create_multipart_upload(**of)["UploadId"]
            try:
                done = [
                    {"PartNumber": n, **self._part(of, upload, n, part)}
                    for n, part in enumerate(parts, start=1)
                ]
                self._client.complete_multipart_upload(**of, UploadId=upload, MultipartUpload={"Parts": done})
            except BaseException:
                self._client.abort_multipart_upload(**of, UploadId=upload)
                raise

    def _part(self, of: Mapping[str, str], upload: str, number: int, part: bytes) -> dict[str, str]:
        told = self._client.upload_part(**of, UploadId=upload, PartNumber=number, Body=part)
        return {name: told[name] for name in ("ETag", "ChecksumCRC32", "ChecksumCRC64NVME") if name in told}

    def _put(self, path: str, raw: bytes, more: Mapping[str, str]) -> str:
        return str(self._client.put_object(**self._of(path), Body=raw, **more)["ETag"])

    def _of(self, path: str) -> dict[str, str]:
        return {"Bucket": self.name, "Key": f"{self._prefix}{path}"}


def connect(name: str, prefix: str, endpoint: str | None, region: str | None, connections: int) -> Bucket:
    """A bucket that answers. Raises NotThere when it is not there or not for these credentials."""
    # By path where an endpoint is named: such services often have no host name for each bucket.
    config = Config(
        retries={"max_attempts": _TRIES, "mode": "standard"},
        connect_timeout=_CONNECT_S,
        read_timeout=_READ_S,
        max_pool_connections=connections,
        s3={"addressing_style": "path" if endpoint else "auto"},
    )
    with _asking(f"connecting to bucket {name}"):
        client: Any = boto3.session.Session(region_name=region).client(
            "s3", endpoint_url=endpoint, config=config
        )
        try:
            client.head_bucket(Bucket=name)
        except ClientError as error:
            if (
                error.response["ResponseMetadata"]["HTTPStatusCode"] >= 500
            ):  # the service's trouble, not the bucket's
                raise
            raise NotThere(
                f"the bucket '{shown(name)}' does not answer to these credentials ({_code(error)}); "
                f"make it, or grant them its use"
            ) from None
    return Bucket(client, name, prefix)


@contextmanager
def _asking(what: str) -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        if _code(error) in _FULL:
            raise NoRoom(f"the storage service refused {shown(what)} ({_code(error)})") from None
        raise ServiceFailed(
            f"the storage service refused {shown(what)} ({_code(error)}); try again later"
        ) from None
    except BotoCoreError as error:
        raise ServiceFailed(f"{shown(what)} failed ({type(error).__name__}); try again later") from None


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", "?"))


def _base64(sha256: str) -> str:
    return base64.b64encode(bytes.fromhex(sha256)).decode()
