"""For all tests of the ingest service: S3, which is moto's own HTTP server, and the kinds of places."""

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from long_tests import LONG

from .places import ALL, NEAR, Kinds, new_bucket

HERE = f"{Path(__file__).parent}/"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In the short form one process has all tests of S3: it loads moto and boto3, and the others need not."""
    if LONG:
        return
    for item in items:
        if isinstance(item, pytest.Function) and str(item.path).startswith(HERE) and _is_of_s3(item):
            item.add_marker(pytest.mark.xdist_group("ingest.s3"))


def _is_of_s3(item: pytest.Function) -> bool:
    places: list[object] = list(item.callspec.params.values()) if hasattr(item, "callspec") else []
    return (
        "s3_server" in item.fixturenames
        or "s3" in places
        or any(isinstance(place, Kinds) and place.storage == "s3" for place in places)
    )


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    """Its URL; the credentials for it are in the environment."""
    from moto.server import ThreadedMotoServer  # which takes half a second to load

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    with pytest.MonkeyPatch.context() as environment:
        for name in [n for n in os.environ if n.startswith("AWS_")]:
            environment.delenv(name)
        environment.setenv("AWS_ACCESS_KEY_ID", "AKIDOFTESTS")
        environment.setenv("AWS_SECRET_ACCESS_KEY", "secret-of-tests")
        environment.setenv("AWS_DEFAULT_REGION", "us-east-1")
        environment.setenv("AWS_EC2_METADATA_DISABLED", "true")
        server.start()
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
        server.stop()


@pytest.fixture
def bucket(s3_server: str) -> str:
    return new_bucket(s3_server)


@pytest.fixture(params=ALL if LONG else (NEAR,), ids="-".join)
def kinds(request: pytest.FixtureRequest) -> Kinds:
    """All of them in the long form; in the short one the nearest, unless a test names others."""
    chosen: Kinds = request.param
    return chosen
