"""Whatever is wrong in a container, it is refused or unpacked, and nothing else happens."""

import random
import tarfile
from pathlib import Path

import pytest

from containers.archives import header, make_tar, make_zip
from long_tests import LONG
from spinney.containers import Limits, unpack
from spinney.files.paths import NotAdmitted

FILES = {"a/b": b"one" * 100, "c": bytes(range(256)), "d/é": b""}
ROUNDS = 5000 if LONG else 150


@pytest.mark.parametrize("name", ["x.zip", "x.tar", "x.tgz", "x.tar.bz2"])
def test_containers_with_wrong_bytes(name: str, tmp_path: Path) -> None:
    chance = random.Random(name)
    long = header("n" * 150, pax_headers={"comment": "c" * 600})
    folder = header("folder", tarfile.DIRTYPE)
    if name == "x.zip":
        container = make_zip(tmp_path / name, FILES)
    else:
        container = make_tar(tmp_path / name, *FILES.items(), long, folder)
    whole = container.read_bytes()
    job = tmp_path / "job"
    job.mkdir()
    refused = 0

    for number in range(ROUNDS):
        container.write_bytes(_damaged(whole, chance))
        try:
            unpack(container, job / str(number), name=name, limits=Limits(total_bytes=10**6, members=100))
        except NotAdmitted:
            refused += 1

    assert refused > ROUNDS / 2
    assert len(list(job.iterdir())) == ROUNDS - refused
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(["job", name])


def _damaged(whole: bytes, chance: random.Random) -> bytes:
    data = bytearray(whole)
    for _ in range(chance.choice((1, 2, 5, 20))):
        at = chance.randrange(len(data))
        if chance.random() < 0.7:
            data[at] = chance.choice((0, 255, data[at] ^ 1, ord("9"), ord("-")))
        elif chance.random() < 0.5:
            data[at:at] = data[at : at + 512]
        else:
            del data[at : at + chance.choice((1, 512))]
        data = data or bytearray(b"x")
    if data[257:262] == b"ustar":  # right sums, so that damage goes deeper than the sum
        for block in range(0, len(data) - 511, 512):
            data[block + 148 : block + 156] = b" " * 8
            data[block + 148 : block + 156] = b"%06o\0 " % sum(data[block : block + 512])
    return bytes(data)
