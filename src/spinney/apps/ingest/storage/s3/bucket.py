"""A prefix of an S3 bucket, with the few operations that a storage needs. Errors are OSError, without secrets."""

import base64
import io
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, BinaryIO
from urllib.parse import quote

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.session import get_session

from spinney.apps.ingest.storage.model import NoSuchObject, NotThere
from spinney.apps.ingest.storage.place import Document
from spinney.files.disk_space import NoRoom
from spinney.files.paths import shown

DELETE_MAX = 1000
"""The number of keys that one request may delete."""
_TRIES = 5
_FULL = {"507", "InsufficientStorage", "QuotaExceeded", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded"}
"""The error codes of full services: the standard one, Ceph's and MinIO's. AWS is never full."""
_CONNECT_S, _READ_S = 10, 60


class ServiceFailed(OSError):
    """The storage service did not carry out a request; try again later, or correct its settings."""


class Overtaken(Exception):
    """A conditional write found another state than expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """An object of the bucket, from a listing."""

    path: str
    size_bytes: int
    tag: str


class Bucket:
    """A prefix of a bucket; paths are below the prefix, '/' between their parts. Threads may share it.

    Conditional writes are tried first; when the service answers once that it has none (501), it gets none
    from then on.
    """

    def __init__(self, client: Any, name: str, prefix: str) -> None:
        self._client, self.name, self.where = client, name, f"s3://{name}/{prefix}"
        self._prefix = f"{prefix}/" if prefix else ""
        self._conditional = True

    def url(self, path: str) -> str:
        """Return the URL of an object, for other programs."""
        return f"{self._client.meta.endpoint_url.rstrip('/')}/{self.name}/{quote(self._prefix + path)}"

    def read(self, path: str) -> Document | None:
        """Read a small object; None when it does not exist."""
        with _request_errors(f"reading {path}"):
            answer = self._get(path)
            return None if answer is None else Document(raw=answer["Body"].read(), tag=answer["ETag"])

    @contextmanager
    def opened(self, path: str) -> Iterator[BinaryIO]:
        """Open an object, to be read once. Raises NoSuchObject when it does not exist."""
        with _request_errors(f"reading {path}"):
            answer = self._get(path)
            if answer is None:
                raise NoSuchObject(f"'{shown(path)}' is not in the storage; restore it from a copy")
            with io.BufferedReader(answer["Body"], 1 << 20) as file:
                yield file

    def put(
        self, path: str, raw: bytes, *, tag: str | None = None, fresh: bool = False, sha256: str | None = None
    ) -> str:
        """Write an object, only over the state ``tag`` or (``fresh``) if it does not exist; return its ETag.

        The service checks the content by ``sha256`` (hexadecimal) when given, else by the CRC that the client
        adds. Raises Overtaken.
        """
        more: dict[str, str] = {}
        if sha256:
            more["ChecksumSHA256"] = base64.b64encode(bytes.fromhex(sha256)).decode()
        condition: dict[str, str] = {"IfMatch": tag} if tag else {"IfNoneMatch": "*"} if fresh else {}
        with _request_errors(f"writing {path}"):
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
        """Yield everything below ``path``, by the path below it."""
        start = f"{self._prefix}{path}/" if path else self._prefix
        with _request_errors(f"listing {path}"):
            pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self.name, Prefix=start)
            for page in pages:
                for entry in page.get("Contents", ()):
                    yield Listed(path=entry["Key"][len(start) :], size_bytes=entry["Size"], tag=entry["ETag"])

    def delete(self, paths: Iterable[str]) -> None:
        """Remove objects; a missing one is no error. Raises ServiceFailed when the service refuses to delete some."""
        keys = [{"Key": f"{self._prefix}{p}"} for p in paths]
        with _request_errors("deleting"):
            for start in range(0, len(keys), DELETE_MAX):
                answer = self._client.delete_objects(
                    Bucket=self.name, Delete={"Objects": keys[start : start + DELETE_MAX], "Quiet": True}
                )
                if answer.get("Errors"):
                    raise ServiceFailed(
                        f"the service would not delete {len(answer['Errors'])} objects; see its rights"
                    )

    def abandon_uploads(self, path: str) -> None:
        """Abort the uploads in parts below ``path`` that were not completed; until then they are stored and cost."""
        with _request_errors(f"listing the uploads below {path}"):
            pages = self._client.get_paginator("list_multipart_uploads").paginate(
                Bucket=self.name, Prefix=f"{self._prefix}{path}/"
            )
            for upload in [u for page in pages for u in page.get("Uploads", ())]:
                self._client.abort_multipart_upload(
                    Bucket=self.name, Key=upload["Key"], UploadId=upload["UploadId"]
                )

    def put_parts(self, path: str, parts: Iterable[bytes]) -> None:
        """Write a large object in parts.

        It exists after the last part; an exception from ``parts`` leaves none, and is raised. After a killed
        process the uploaded parts stay, and cost, until ``abandon_uploads``. Raises OSError.
        """
        of = self._of(path)
        with _request_errors(f"writing {path}"):
            upload = self._client.create_multipart_upload(**of)["UploadId"]
            try:
                uploaded = [
                    {"PartNumber": n, **self._part(of, upload, n, part)}
                    for n, part in enumerate(parts, start=1)
                ]
                self._client.complete_multipart_upload(
                    **of, UploadId=upload, MultipartUpload={"Parts": uploaded}
                )
            except BaseException:
                self._client.abort_multipart_upload(**of, UploadId=upload)
                raise

    def _part(self, of: Mapping[str, str], upload: str, number: int, part: bytes) -> dict[str, str]:
        answer = self._client.upload_part(**of, UploadId=upload, PartNumber=number, Body=part)
        return {
            name: answer[name] for name in ("ETag", "ChecksumCRC32", "ChecksumCRC64NVME") if name in answer
        }

    def _get(self, path: str) -> dict[str, Any] | None:
        """Return the answer with an object; None when it does not exist."""
        try:
            answer: dict[str, Any] = self._client.get_object(**self._of(path))
            return answer
        except ClientError as error:
            if _code(error) in ("NoSuchKey", "404"):
                return None
            raise

    def _put(self, path: str, raw: bytes, more: Mapping[str, str]) -> str:
        return str(self._client.put_object(**self._of(path), Body=raw, **more)["ETag"])

    def _of(self, path: str) -> dict[str, str]:
        return {"Bucket": self.name, "Key": f"{self._prefix}{path}"}


def connect(name: str, endpoint: str | None, region: str | None, connections: int) -> Any:
    """Return a client of the service, by which a bucket can be used. Raises NotThere when the bucket does not exist or
    these credentials may not use it. ``endpoint``: the URL of a service other than Amazon's; ``region``: None is the
    one of the environment. ``connections``: how many the client keeps."""
    # By path where an endpoint is named: such services often have no host name for each bucket.
    config = Config(
        retries={"max_attempts": _TRIES, "mode": "standard"},
        connect_timeout=_CONNECT_S,
        read_timeout=_READ_S,
        max_pool_connections=connections,
        s3={"addressing_style": "path" if endpoint else "auto"},
    )
    with _request_errors(f"connecting to bucket {name}"):
        session = get_session()  # anew each time, because credentials may have changed
        session.register_component("data_loader", _service_descriptions())
        client: Any = session.create_client("s3", region, endpoint_url=endpoint, config=config)
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
    return client


@cache
def _service_descriptions() -> Any:
    """Return the loader of AWS's descriptions of its services. It keeps what it has read; to read them anew would take
    four fifths of the time of connecting."""
    return get_session().get_component("data_loader")


@contextmanager
def _request_errors(request: str) -> Iterator[None]:
    """Turn errors of botocore into OSError, which names the request and the service's code, and nothing that
    could be a secret."""
    try:
        yield
    except ClientError as error:
        if _code(error) in _FULL:
            raise NoRoom(f"the storage service refused {shown(request)} ({_code(error)})") from None
        raise ServiceFailed(
            f"the storage service refused {shown(request)} ({_code(error)}); try again later"
        ) from None
    except BotoCoreError as error:
        raise ServiceFailed(f"{shown(request)} failed ({type(error).__name__}); try again later") from None


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", "?"))
