"""What lies about its size or is made to burst is stopped early, in bounded memory."""

import bz2
import gzip
import io
import struct
import tracemalloc
import zipfile
import zlib
from contextlib import suppress
from pathlib import Path

import pytest

from containers.archives import RawZip, header, make_tar, make_zip, raw_header, tar_bytes
from containers.conftest import Refused, Unpack
from spinney.containers import Limits, unpack

ZEROS = bytes(30_000_000)


@pytest.mark.parametrize("name", ["x.zip", "x.tar.gz", "x.tar.bz2"])
def test_a_bomb_stops_at_the_ratio(name: str, tmp_path: Path, refused: Refused) -> None:
    make = (
        make_zip(tmp_path / name, {"z": ZEROS})
        if name == "x.zip"
        else make_tar(tmp_path / name, ("z", ZEROS))
    )

    assert "more than 200 bytes per byte" in refused(make)


def test_small_output_is_no_bomb_whatever_its_ratio(tmp_path: Path, unpacked: Unpack) -> None:
    assert unpacked(make_zip(tmp_path / "x.zip", {"z": bytes(9_000_000)}))[0].size_bytes == 9_000_000


@pytest.mark.parametrize("name", ["x.zip", "x.tar"])
def test_the_total_is_over_all_members(name: str, tmp_path: Path, refused: Refused) -> None:
    files = {"a": bytes(600), "b": bytes(600)}
    make = make_zip(tmp_path / name, files) if name == "x.zip" else make_tar(tmp_path / name, *files.items())

    message = refused(make, total_bytes=1000)

    assert "member 'b': it unpacks to more than 1000 bytes" in message


def test_the_limits_themselves_are_lawful(tmp_path: Path, unpacked: Unpack) -> None:
    files = [("a", bytes(600)), ("b", bytes(400))]

    assert len(unpacked(make_tar(tmp_path / "x.tar.gz", *files), total_bytes=1000, members=2, depth=0)) == 2


def test_a_zip_that_declares_less_than_it_holds(tmp_path: Path, refused: Refused) -> None:
    """Also with the sum of its beginning, for which zipfile by itself hands out the beginning."""
    for number, summed in enumerate((len(ZEROS), 100, 101)):
        raw = RawZip().add(b"z", ZEROS, size=100, crc=zlib.crc32(bytes(summed)))

        message = refused(raw.write(tmp_path / f"{number}.zip"))

        assert "member 'z': it is" in message
        assert ("larger than the 100 bytes" in message) == (summed == 101)


def test_a_zip_that_declares_more_than_it_holds(tmp_path: Path, refused: Refused) -> None:
    container = RawZip().add(b"z", b"abc", size=100).write(tmp_path / "x.zip")

    assert "member 'z': it ends after 3 of 100 bytes" in refused(container)


def test_members_that_share_bytes(tmp_path: Path, refused: Refused) -> None:
    """The quoted overlap of "A better zip bomb": the first member's data hold the second's header."""
    kernel = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = kernel.compress(ZEROS) + kernel.flush()
    inner = RawZip.local(b"b", len(packed), len(ZEROS), zlib.crc32(ZEROS))
    quote = struct.pack("<BHH", 0, len(inner), len(inner) ^ 0xFFFF)
    both = inner + ZEROS
    raw = RawZip()
    raw.body = RawZip.local(b"a", len(quote + inner + packed), len(both), zlib.crc32(both)) + quote
    at = len(raw.body)
    raw.body += inner + packed
    common = {"flags": 0x800, "method": 8, "mode": 0o100644}
    raw.list(b"a", 0, packed=len(quote + inner + packed), size=len(both), crc=zlib.crc32(both), **common)
    raw.list(b"b", at, packed=len(packed), size=len(ZEROS), crc=zlib.crc32(ZEROS), **common)
    container = raw.write(tmp_path / "x.zip")
    with zipfile.ZipFile(container) as bomb, suppress(zipfile.BadZipFile):  # a mended zipfile sees it, too
        assert bomb.read("a") == both, "the bomb is a real one"

    assert "member 'b': it shares bytes with 'a'" in refused(container, total_bytes=10**9, ratio=1e9)


def test_one_member_listed_many_times(tmp_path: Path, refused: Refused) -> None:
    raw = RawZip().add(b"a", b"1" * 50)
    raw.table *= 500
    raw.count = 500

    assert "shares bytes" in refused(raw.write(tmp_path / "x.zip"))


def test_a_member_that_reaches_into_the_table(tmp_path: Path, refused: Refused) -> None:
    raw = RawZip().add(b"a", b"12", stored=True)
    raw.table, raw.count = b"", 0
    raw.list(b"a", 0, packed=60, size=60, crc=0, flags=0, method=0, mode=0)

    assert "table of contents" in refused(raw.write(tmp_path / "x.zip"))


def test_a_table_that_lies_about_its_length(tmp_path: Path, refused: Refused) -> None:
    assert "declares 2 members and has 1" in refused(
        RawZip().add(b"a", b"1").write(tmp_path / "x.zip", count=2)
    )
    assert "has more than 10 members" in refused(
        make_zip(tmp_path / "y.zip", {f"f{i}": b"" for i in range(11)}), members=10
    )


@pytest.mark.parametrize("flags", [1, 1 << 6, 1 << 13])
def test_encrypted_members(flags: int, tmp_path: Path, refused: Refused) -> None:
    container = RawZip().add(b"secret", b"1", flags=0x800 | flags).write(tmp_path / "x.zip")

    assert "member 'secret': it is encrypted" in refused(container)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_methods_that_unpack_without_a_bound(method: int, tmp_path: Path, refused: Refused) -> None:
    assert "is not stored or deflated" in refused(make_zip(tmp_path / "x.zip", {"a": b"1"}, method))


@pytest.mark.parametrize("kind", [b"x", b"g", b"L", b"K"])
def test_a_header_of_any_size_takes_little_memory(kind: bytes, tmp_path: Path, refused: Refused) -> None:
    size = 64_000_000
    (tmp_path / "x.tgz").write_bytes(gzip.compress(raw_header(b"h", size, kind) + bytes(size), 9))
    tracemalloc.start()
    try:
        message = refused(tmp_path / "x.tgz", ratio=1e9)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert "headers take more than" in message
    assert peak < 10_000_000


def test_a_chain_of_headers_without_end(tmp_path: Path, refused: Refused) -> None:
    link = raw_header(b"h", 8, b"L") + b"name\0".ljust(512, b"\0")
    (tmp_path / "x.tar").write_bytes(link * 5000 + bytes(1024))

    assert "container 'x.tar'" in refused(tmp_path / "x.tar")


@pytest.mark.parametrize("size", [-512, -1, 1 << 62])
def test_sizes_that_cannot_be(size: int, tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "x.tar").write_bytes(raw_header(b"odd", size) + bytes(2048))

    assert "member 'odd': it " in refused(tmp_path / "x.tar")


@pytest.mark.parametrize("size", [-512, -1, 1 << 62])
@pytest.mark.parametrize("kind", [b"x", b"L"])
def test_headers_with_sizes_that_cannot_be(size: int, kind: bytes, tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "x.tar").write_bytes(raw_header(b"odd", size, kind) + raw_header(b"a", 0) * 3 + bytes(2048))

    refused(tmp_path / "x.tar")


def test_a_header_of_digits_without_end(tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "x.tar").write_bytes(raw_header(b"h", 60_000, b"x") + b"1" * 60_000 + bytes(2048))

    assert "endless digits" in refused(tmp_path / "x.tar")


def test_a_file_in_constant_memory(tmp_path: Path, into: Path) -> None:
    content = io.BytesIO()
    with gzip.GzipFile(fileobj=content, mode="wb", compresslevel=1) as packed:
        packed.write(raw_header(b"big", 200 << 20))
        for _ in range(200):
            packed.write(bytes(1 << 20))
        packed.write(bytes(1024))
    (tmp_path / "x.tgz").write_bytes(content.getvalue())
    tracemalloc.start()
    try:
        unpack(tmp_path / "x.tgz", into, name="x.tgz", limits=Limits(total_bytes=1 << 30, ratio=1e6))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert (into / "big").stat().st_size == 200 << 20
    assert peak < 20_000_000


WHOLE = {"a": b"one" * 1000, "b": bytes(range(256)) * 20}


@pytest.mark.parametrize("name", ["x.zip", "x.tar", "x.tar.gz", "x.tar.bz2"])
@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.9, 0.999])
def test_a_container_that_was_cut_off(name: str, share: float, tmp_path: Path, refused: Refused) -> None:
    files = WHOLE.items()
    whole = (
        make_zip(tmp_path / name, WHOLE) if name == "x.zip" else make_tar(tmp_path / name, *files)
    ).read_bytes()
    end = int(len(whole) * share)
    if name == "x.tar" and share > 0.8:
        end = 512 * 18  # behind the last member, before the end mark
    (tmp_path / name).write_bytes(whole[:end])

    refused(tmp_path / name)


def test_damage_is_found_by_the_sums(tmp_path: Path, refused: Refused) -> None:
    zipped = bytearray(make_zip(tmp_path / "x.zip", WHOLE, zipfile.ZIP_STORED).read_bytes())
    zipped[100] ^= 1
    (tmp_path / "x.zip").write_bytes(zipped)
    packed = bytearray(make_tar(tmp_path / "x.tgz", *WHOLE.items()).read_bytes())
    packed[-6] ^= 1  # in gzip's own sum, which stands behind all members
    (tmp_path / "x.tgz").write_bytes(packed)

    assert "member 'a': it is damaged" in refused(tmp_path / "x.zip")
    assert "damaged" in refused(tmp_path / "x.tgz")


def test_a_damaged_header_in_the_middle_loses_nothing_in_silence(tmp_path: Path, refused: Refused) -> None:
    tar = bytearray(tar_bytes(("a", b"1"), ("b", b"2"), ("c", b"3")))
    tar[1024] ^= 1
    (tmp_path / "x.tar").write_bytes(tar)

    assert "damaged" in refused(tmp_path / "x.tar")


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress])
def test_a_second_archive_behind_the_first(pack: type, tmp_path: Path, refused: Refused) -> None:
    name = {bytes: "x.tar", gzip.compress: "x.tgz", bz2.compress: "x.tar.bz2"}[pack]
    (tmp_path / name).write_bytes(pack(tar_bytes(("a", b"1"))) + pack(tar_bytes(("b", b"2"))))

    assert "behind its end" in refused(tmp_path / name)


@pytest.mark.parametrize("second", [{"b": b"2"}, {}])
def test_two_zips_joined_into_one_are_no_half_of_it(
    second: dict[str, bytes], tmp_path: Path, refused: Refused
) -> None:
    first = make_zip(tmp_path / "a.zip", WHOLE).read_bytes()
    joined = first + make_zip(tmp_path / "b.zip", second).read_bytes()
    (tmp_path / "x.zip").write_bytes(joined)

    assert f"lists nothing before byte {len(first)}, and there is data" in refused(tmp_path / "x.zip")


def test_so_it_is_where_the_table_was_made_to_fit(tmp_path: Path, refused: Refused) -> None:
    """As `zip -A` does."""
    raw = RawZip().add(b"a", b"1")
    raw.table, raw.count = b"", 0

    assert "lists nothing before byte" in refused(raw.add(b"b", b"2").write(tmp_path / "x.zip"))


def test_a_zip_with_something_behind_it(tmp_path: Path, refused: Refused) -> None:
    whole = make_zip(tmp_path / "x.zip", WHOLE).read_bytes()
    (tmp_path / "x.zip").write_bytes(whole + b"more")

    assert "behind its end" in refused(tmp_path / "x.zip")


def test_extended_attributes_are_read_over(tmp_path: Path, unpacked: Unpack) -> None:
    info = header("a", pax_headers={"SCHILY.xattr.user.note": "x" * 30_000})

    assert [m.path for m in unpacked(make_tar(tmp_path / "x.tar", info))] == ["a"]


def test_an_empty_container_is_empty(tmp_path: Path, unpacked: Unpack, into: Path) -> None:
    assert unpacked(make_zip(tmp_path / "x.zip", {})) == []
    assert unpacked(make_tar(tmp_path / "x.tar")) == []
    assert not list(into.iterdir())
