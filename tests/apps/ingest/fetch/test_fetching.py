"""Files come whole and checked; what stands is kept, what is missing or wrong is fetched."""

import errno
import hashlib
import json
import os
import threading
from pathlib import Path

import pytest

from apps.ingest.web import Exchange, Web, stuck
from spinney.apps.ingest.fetch import FetchFailed, RemoteFile, Rules, Stopped, aside_of, fetch_all, journal
from spinney.files.digests import digest
from spinney.files.paths import NotAdmitted

SHA256 = hashlib.sha256(b"hello").hexdigest()
MD5 = hashlib.md5(b"hello").hexdigest()


def names_below(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def test_files_come_whole_in_order_with_their_sums(web: Web, rules: Rules, folder: Path) -> None:
    a = RemoteFile(url=web.put("/a", b"hello"), name="a.txt", digest=digest("MD5", MD5), size_bytes=5)
    b = RemoteFile(url=web.put("/b", b"", headers={}), name="deep/er/b ü\n.txt")
    came: list[int] = []

    fetched = fetch_all([a, b], folder, rules, progress=came.append)

    assert (folder / "a.txt").read_bytes() == b"hello"
    assert (folder / "deep/er/b ü\n.txt").read_bytes() == b""
    assert [f.name for f in fetched] == [a.name, b.name]
    assert fetched[0].sums == {"sha256": SHA256, "md5": MD5}
    assert (fetched[0].size_bytes, fetched[1].size_bytes) == (5, 0)
    assert sum(came) == 5


def test_only_whole_files_lie_in_the_folder_and_no_part_is_left(web: Web, rules: Rules, folder: Path) -> None:
    # Names that a manifest may lawfully give, though they look like ours.
    files = [
        RemoteFile(url=web.put(f"/{n}", b"x"), name=name)
        for n, name in enumerate(["x", "x.part", "fetched.jsonl", "lock", ".fetching/x.json"])
    ]

    fetch_all(files, folder, rules)

    assert names_below(folder) == sorted(w.name for w in files)
    assert names_below(aside_of(folder)) == ["fetched.jsonl", "lock"]


def test_any_algorithms_may_be_asked_for(web: Web, rules: Rules, folder: Path) -> None:
    files = [RemoteFile(url=web.put("/a", b"hello"), name="a")]

    [fetched] = fetch_all(files, folder, rules, algorithms=["SHA-512", "crc32", "adler32"])

    assert fetched.sums["crc32"] == "3610a686"
    assert set(fetched.sums) == {"sha512", "crc32", "adler32"}
    with pytest.raises(NotAdmitted, match="sha3"):
        fetch_all(files, folder, rules, algorithms=["sha3"])


def test_what_stands_with_the_digest_given_is_not_fetched_again(web: Web, rules: Rules, folder: Path) -> None:
    folder.mkdir()
    (folder / "a").write_bytes(b"hello")
    url = web.put("/a", b"hello")

    [fetched] = fetch_all([RemoteFile(url=url, name="a", digest=digest("sha256", SHA256))], folder, rules)

    assert fetched.sums == {"sha256": SHA256}
    assert web.log == []


def test_what_stands_without_a_digest_is_kept_by_the_journal(web: Web, rules: Rules, folder: Path) -> None:
    files = [RemoteFile(url=web.put(f"/{n}", b"%d" % n), name=str(n)) for n in range(3)]
    first = fetch_all(files, folder, rules)
    (folder / "1").unlink()

    again = fetch_all(files, folder, rules)

    assert again == first
    assert [web.request_count(f"/{n}") for n in range(3)] == [1, 2, 1]


@pytest.mark.parametrize("digest_given", [True, False])
def test_what_was_damaged_is_fetched_again(web: Web, rules: Rules, folder: Path, digest_given: bool) -> None:
    declared_digest = digest("sha256", SHA256) if digest_given else None
    files = [RemoteFile(url=web.put("/a", b"hello"), name="a", digest=declared_digest)]
    fetch_all(files, folder, rules)
    (folder / "a").write_bytes(b"hellO")

    fetch_all(files, folder, rules)

    assert (folder / "a").read_bytes() == b"hello"
    assert web.request_count("/a") == 2


def test_a_damaged_file_does_not_stand_on_when_it_cannot_be_fetched(
    web: Web, rules: Rules, folder: Path
) -> None:
    folder.mkdir()
    (folder / "a").write_bytes(b"hellO")

    with pytest.raises(FetchFailed, match="404"):
        fetch_all([RemoteFile(url=web.url("/a"), name="a", digest=digest("md5", MD5))], folder, rules)

    assert names_below(folder) == []


def test_a_file_that_may_not_be_read_is_fetched_again(
    web: Web, rules: Rules, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = RemoteFile(url=web.put("/a", b"hello"), name="a")
    fetch_all([a], folder, rules)

    def forbidden(*_: object) -> None:  # modes do not bind root
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(journal.paths, "opened_beneath", forbidden)
    fetch_all([a], folder, rules)

    assert (folder / "a").read_bytes() == b"hello"
    assert web.request_count("/a") == 2


def test_without_a_digest_another_url_is_another_file(web: Web, rules: Rules, folder: Path) -> None:
    fetch_all([RemoteFile(url=web.put("/a", b"hello"), name="a")], folder, rules)

    fetch_all([RemoteFile(url=web.put("/b", b"world"), name="a")], folder, rules)

    assert (folder / "a").read_bytes() == b"world"


def test_a_file_without_digest_and_journal_is_not_taken_for_ours(
    web: Web, rules: Rules, folder: Path
) -> None:
    folder.mkdir()
    (folder / "a").write_bytes(b"HELLO")

    fetch_all([RemoteFile(url=web.put("/a", b"hello"), name="a", size_bytes=5)], folder, rules)

    assert (folder / "a").read_bytes() == b"hello"


def test_a_torn_or_garbled_journal_costs_a_download_and_no_more(web: Web, rules: Rules, folder: Path) -> None:
    files = [RemoteFile(url=web.put(f"/{n}", b"%d" % n), name=str(n)) for n in range(2)]
    fetch_all(files, folder, rules, at_once=1)
    journal = aside_of(folder) / "fetched.jsonl"
    first, second = journal.read_bytes().splitlines(keepends=True)
    strange = [b"[1]\n", b"\xff\n", b"null\n", json.dumps({**json.loads(second), "sums": 1}).encode() + b"\n"]
    journal.write_bytes(b"".join([first, *strange, second[:-20]]))

    fetch_all(files, folder, rules)
    fetch_all(files, folder, rules)

    assert [web.request_count("/0"), web.request_count("/1")] == [1, 2]


def test_a_link_in_the_folder_is_not_followed(web: Web, rules: Rules, folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a").write_bytes(b"hello")
    folder.mkdir()
    (folder / "sub").symlink_to(outside)
    (folder / "a").symlink_to(outside / "a")
    url = web.put("/a", b"hello")

    fetch_all([RemoteFile(url=url, name="a", digest=digest("md5", MD5))], folder, rules)
    with pytest.raises(FetchFailed, match="leads out") as failure:
        fetch_all([RemoteFile(url=url, name="sub/deeper/a")], folder, rules)

    assert not failure.value.retryable
    assert not (folder / "a").is_symlink()
    assert names_below(outside) == ["a"]


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "/etc/cron.d/x", "../x", "a/../../x", "a//b", "a/./b", "a\0b", "x" * 256, "\udcff"],
)
def test_hostile_names_are_refused_before_anything_is_asked(
    web: Web, rules: Rules, folder: Path, name: str
) -> None:
    good = RemoteFile(url=web.put("/a", b"x"), name="good")

    with pytest.raises(NotAdmitted):
        fetch_all([good, RemoteFile(url=good.url, name=name)], folder, rules)

    assert not folder.exists()
    assert web.log == []


@pytest.mark.parametrize("names", [("a", "a"), ("a/b", "a"), ("a", "a/b/c")])
def test_two_files_cannot_have_one_place(
    web: Web, rules: Rules, folder: Path, names: tuple[str, str]
) -> None:
    url = web.put("/a", b"x")

    with pytest.raises(NotAdmitted, match=r"give each path once|rename one of them"):
        fetch_all([RemoteFile(url=url, name=n) for n in names], folder, rules)


def test_a_file_url_is_copied_from_below_a_root(folder: Path, tmp_path: Path) -> None:
    source = tmp_path / "scans" / "a b.tif"
    source.parent.mkdir()
    source.write_bytes(b"hello")
    rules = Rules(file_roots=(source.parent,))
    came: list[int] = []
    files = [RemoteFile(url=source.as_uri(), name="a", digest=digest("md5", MD5))]

    [fetched] = fetch_all(files, folder, rules, progress=came.append)

    assert (folder / "a").read_bytes() == b"hello"
    assert fetched.sums == {"sha256": SHA256, "md5": MD5}
    assert came == [5]


def test_a_file_url_follows_no_link_and_opens_no_pipe(folder: Path, tmp_path: Path) -> None:
    scans = tmp_path / "scans"
    scans.mkdir()
    (scans / "link").symlink_to("/etc/hostname")
    (scans / "folder").symlink_to("/etc")
    os.mkfifo(scans / "pipe")
    rules = Rules(file_roots=(scans,))

    for path in ("link", "folder/hostname", "pipe", "gone", "../secret", "%2e%2e/secret"):
        with pytest.raises(FetchFailed) as failure:
            fetch_all([RemoteFile(url=f"file://{scans}/{path}", name="a")], folder, rules)
        assert not failure.value.retryable
    assert names_below(folder) == []


def test_a_file_of_another_digest_is_copied_twice_and_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"hellO")
    file = RemoteFile(url=(tmp_path / "a").as_uri(), name="a", digest=digest("md5", MD5))
    came: list[int] = []

    with pytest.raises(FetchFailed, match=f"md5 digest is [0-9a-f]{{32}}, and the given one is {MD5}"):
        fetch_all([file], folder, Rules(file_roots=(tmp_path,)), progress=came.append)

    assert sum(came) == 10


def test_the_first_failure_ends_the_others_soon_and_is_the_one_told(
    web: Web, rules: Rules, folder: Path
) -> None:
    hanging = threading.Event()

    def hang(x: Exchange) -> None:
        hanging.set()
        stuck(3000)(x)

    def fail(x: Exchange) -> None:
        hanging.wait(timeout=30)
        x.head(403, {"Content-Length": 0})

    files = [
        RemoteFile(url=web.put("/stuck", b"x" * 9000, always=hang), name="stuck"),
        RemoteFile(url=web.put("/no", b"x", always=fail), name="no"),
        *(RemoteFile(url=web.put(f"/{n}", b"x"), name=str(n)) for n in range(3)),
    ]

    with pytest.raises(FetchFailed, match=r"'no'.*403") as failure:
        fetch_all(files, folder, rules, at_once=2)

    assert (failure.value.name, failure.value.url, failure.value.retryable) == ("no", web.url("/no"), False)
    assert [web.request_count(f"/{n}") for n in range(3)] == [0, 0, 0]


def test_called_off_it_keeps_what_has_come(web: Web, rules: Rules, folder: Path) -> None:
    url = web.put("/a", bytes(9000), stuck(3000))
    came: list[int] = []
    threads: set[str] = set()

    def stopped() -> bool:
        threads.add(threading.current_thread().name)
        return sum(came) == 3000

    with pytest.raises(Stopped):
        fetch_all([RemoteFile(url=url, name="a")], folder, rules, progress=came.append, stopped=stopped)
    fetch_all([RemoteFile(url=url, name="a")], folder, rules)

    assert web.ranges("/a") == [None, "bytes=3000-"]
    assert (folder / "a").read_bytes() == bytes(9000)
    assert threads == {threading.current_thread().name}


def test_what_the_caller_raises_ends_the_fetching(web: Web, rules: Rules, folder: Path) -> None:
    def progress(_: int) -> None:
        raise KeyError("the caller's own")

    url = web.put("/a", bytes(9000), stuck(3000))
    with pytest.raises(KeyError, match="own"):
        fetch_all([RemoteFile(url=url, name="a")], folder, rules, progress=progress)


def test_a_second_process_in_the_same_folder_is_refused(web: Web, rules: Rules, folder: Path) -> None:
    files = [RemoteFile(url=web.put("/a", bytes(9000), stuck(3000)), name="a")]
    second: list[FetchFailed] = []

    def meanwhile() -> bool:
        if web.request_count("/a"):
            with pytest.raises(FetchFailed, match="another process") as failure:
                fetch_all(files, folder, rules)
            second.append(failure.value)
        return bool(second)

    with pytest.raises(Stopped):
        fetch_all(files, folder, rules, stopped=meanwhile)
    assert second[0].retryable


def test_a_file_system_that_fails_is_named_and_may_be_tried_again(
    web: Web, rules: Rules, folder: Path
) -> None:
    (folder / "a").mkdir(parents=True)

    with pytest.raises(FetchFailed, match="file system") as failure:
        fetch_all([RemoteFile(url=web.put("/a", b"x"), name="a")], folder, rules)

    assert failure.value.retryable


def test_nothing_wanted_writes_nothing(folder: Path) -> None:
    assert fetch_all([], folder, Rules()) == []
    assert not folder.exists()
