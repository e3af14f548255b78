"""A share that the kernel really has mounted is no place for a SQLite store."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from store import mounted_share

MAKING = {8, 9, 35}
"""MKNOD, MKDIR, CREATE, as FUSE numbers them."""


@pytest.mark.parametrize("kind", ["fuse.sshfs", "fuse.glusterfs", "fuse.s3fs"])
def test_a_store_on_a_mounted_share_is_refused_and_nothing_is_made_there(tmp_path: Path, kind: str) -> None:
    share = tmp_path / "share"
    share.mkdir()

    result = subprocess.run(
        [sys.executable, mounted_share.__file__, str(share), kind, f"sqlite:///{share}/x.db"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    if result.returncode == mounted_share.CANNOT_MOUNT:
        pytest.skip(f"nothing can be mounted here: {result.stderr.strip()}")

    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["mounted"]
    assert document["said"] == (
        f"{share}/x.db lies on a network file system ({kind} at {share}), where SQLite loses data; "
        f"put the store on a local disk"
    )
    assert not MAKING & set(document["seen"])
    assert not share.is_mount(), "it is gone with its process"
