"""An algorithm has one name however it is spelt, and a value one form."""

import hashlib
import subprocess
import sys
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.files import digests
from spinney.files.digests import Digest, Sums
from spinney.files.paths import NotAdmitted


@pytest.mark.parametrize(
    ("spelt", "meant"),
    [
        ("sha256", "sha256"),
        ("SHA-256", "sha256"),
        ("Sha-1", "sha1"),
        ("MD5", "md5"),
        ("md-5", "md5"),
        ("\tSHA384 ", "sha384"),
        ("SHA-512", "sha512"),
        ("Adler-32", "adler32"),
        ("CRC32", "crc32"),
    ],
)
def test_any_spelling_of_an_algorithm_is_one_name(spelt: str, meant: str) -> None:
    assert digests.canonical(spelt) == meant


@pytest.mark.parametrize(
    "spelt", ["", "-", "sha", "sha-2-56", "sha3-256", "blake2b", "sha256\0", "ＳＨＡ２５６"]
)
def test_what_is_no_algorithm_is_refused_with_those_that_are(spelt: str) -> None:
    with pytest.raises(NotAdmitted, match="adler32, crc32, md5, sha1, sha256, sha384, sha512"):
        digests.canonical(spelt)


def test_a_value_is_kept_in_lowercase_without_blanks() -> None:
    value = hashlib.sha1(b"spinney").hexdigest()

    assert digests.digest("SHA-1", f" {value.upper()}\t") == Digest("sha1", value)


@pytest.mark.parametrize("algorithm", ["adler32", "crc32"])
def test_leading_zeros_that_a_tool_dropped_are_put_back(algorithm: str) -> None:
    assert digests.digest(algorithm, "C1E0307").value == "0c1e0307"
    assert digests.digest(algorithm, "0").value == "00000000"


@pytest.mark.parametrize(
    ("algorithm", "value"),
    [
        ("md5", ""),
        ("md5", "0" * 31),
        ("md5", "0" * 33),
        ("md5", "g" * 32),
        ("md5", "+" + "0" * 31),
        ("md5", "0_0" + "0" * 29),
        ("md5", "０" * 32),
        ("md5", "0" * 31 + "\n0"),
        ("sha256", "0" * 64 + "\n" + "0" * 64),
        ("sha512", "0" * 1_000_000),
        ("crc32", ""),
        ("crc32", "0x1"),
        ("crc32", "123456789"),
        ("crc32", "-1"),
    ],
)
def test_what_is_no_value_is_refused_by_name_in_a_short_sentence(algorithm: str, value: str) -> None:
    with pytest.raises(NotAdmitted, match=f"is no {algorithm} value") as refusal:
        digests.digest(algorithm, value)

    assert len(str(refusal.value)) < 1000
    assert str(refusal.value).isprintable()


def test_many_sums_of_one_stream_are_those_of_other_tools() -> None:
    sums = Sums(digests.ALGORITHMS)
    for chunk in (b"spin", bytearray(b"ne"), memoryview(b"y"), b""):
        sums.update(chunk)

    assert sums.values() == {
        **{a: hashlib.new(a, b"spinney").hexdigest() for a in ("md5", "sha1", "sha256", "sha384", "sha512")},
        "adler32": f"{zlib.adler32(b'spinney'):08x}",
        "crc32": f"{zlib.crc32(b'spinney'):08x}",
    }


@given(st.lists(st.binary(), max_size=5))
def test_however_a_stream_is_cut_every_value_is_one_that_is_admitted(chunks: list[bytes]) -> None:
    cut, whole = Sums(digests.ALGORITHMS), Sums(digests.ALGORITHMS)
    for chunk in chunks:
        cut.update(chunk)
    whole.update(b"".join(chunks))

    assert cut.values() == whole.values()
    for algorithm, value in cut.values().items():
        assert digests.digest(algorithm, value) == Digest(algorithm, value)


def test_sums_of_nothing_and_one_algorithm_spelt_twice() -> None:
    assert Sums([]).values() == {}
    assert Sums(["MD5", "md-5"]).values() == {"md5": hashlib.md5(b"").hexdigest()}
    with pytest.raises(NotAdmitted, match="rot13"):
        Sums(["md5", "rot13"])


def test_the_known_names_cannot_be_changed_by_accident() -> None:
    with pytest.raises(TypeError):
        digests.ALGORITHMS["rot13"] = 1  # type: ignore[index]


def test_the_example_in_the_docs_is_true() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "doctest", digests.__file__], capture_output=True, text=True, check=False
    )

    assert (ran.returncode, ran.stdout) == (0, "")
