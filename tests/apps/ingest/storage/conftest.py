"""Real places, each made anew for a test."""

from pathlib import Path

import pytest

from long_tests import long_alone

from ..places import Bed, Bucket, Disk


@pytest.fixture
def disk(tmp_path: Path) -> Bed:
    return Disk(tmp_path / "root")


@pytest.fixture
def s3(tmp_path: Path, s3_server: str, bucket: str) -> Bed:
    return Bucket(s3_server, bucket, tmp_path)


@pytest.fixture(params=["disk", pytest.param("s3", marks=long_alone)])
def either(request: pytest.FixtureRequest) -> Bed:
    """For what does not depend on the place: in S3 only when there is time."""
    bed: Bed = request.getfixturevalue(request.param)
    return bed


@pytest.fixture(params=["disk", "s3"])
def bed(request: pytest.FixtureRequest) -> Bed:
    chosen: Bed = request.getfixturevalue(request.param)
    return chosen
