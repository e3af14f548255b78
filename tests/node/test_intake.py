"""The intake of an inbox: what is taken, what is rejected and why, and one job a file over every crash."""

import errno
import hashlib
import json
import os
import signal
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest

import job_verbs
from in_memory import in_memory
from long_tests import LONG
from new_store import new_store, new_store_on_server
from spinney.folders import dropped_files, folders
from spinney.folders.drop_folder import DropFolder, Stopped
from spinney.model.jobs import Job, NodeInfo, Submission
from spinney.model.rights.actor import Actor
from spinney.model.settings.inboxes import Arrival, ArrivalOutcome, Inbox
from spinney.model.states import State
from spinney.model.types import LockSpec, StageSpec, TypeSpec
from spinney.node.services.intake import Intake, Taken
from spinney.store.parts import Store
from spinney.store.sql import open_store

T = TypeVar("T")
ANN = Actor(by="ann", call="c1")
NOW_US = 1_700_000_000_000_000


@dataclass
class House:
    """A store, a folder root, inboxes, and nodes that are nothing but a row."""

    place: Path
    url: str
    store: Store
    clock_s: float = 0.0
    intakes: dict[tuple[str, int], Intake] = field(default_factory=dict)
    folder_root: Path = Path()

    def __post_init__(self) -> None:
        self.folder_root = self.place / "root"
        self.folder_root.mkdir()
        (self.folder_root / ".spinney-token").touch()
        schema = {"type": "object", "properties": {"file": {"type": "string"}}}
        self.store.register([TypeSpec(name="read", stages=(StageSpec(name="work"),), schema=schema)], ())
        self.node = self.join("oak")

    def join(self, name: str) -> int:
        info = NodeInfo(
            id=0,
            name=name,
            host="host",
            boot_id="boot",
            pid=1,
            slots=4,
            state="active",
            beat=0,
            started_us=NOW_US,
            seen_us=NOW_US,
            version="0",
            types=(),
            lease_s=15.0,
        )
        return self.store.join(info, now_us=NOW_US)

    def inbox(self, name: str = "in", **fields: Any) -> Path:
        folder = self.place / name
        folder.mkdir(exist_ok=True)
        made = Inbox(name=name, folder=str(folder), type="read", **{"rest_s": 5.0} | fields)
        self.store.inboxes.put(made, ANN, now_us=NOW_US)
        return folder

    def intake(self, node: int, store: Store) -> Intake:
        def do(verb: Callable[[Store], T]) -> T:
            return verb(store)

        return Intake(
            do,
            root=self.folder_root,
            node_id=node,
            now_us=lambda: NOW_US,
            clock=lambda: self.clock_s,
        )

    def step(self, name: str = "in", node: int | None = None) -> Taken:
        node = self.node if node is None else node
        assert self.store.inboxes.serve(name, node, now_us=NOW_US)
        intake = self.intakes.setdefault((name, node), self.intake(node, self.store))
        return intake.step(next(i for i in self.store.inboxes.all() if i.name == name))

    def settle(self, name: str = "in", node: int | None = None) -> Taken:
        """A look, and another when everything has rested."""
        self.step(name, node)
        self.clock_s += 10
        return self.step(name, node)

    def arrivals(self, name: str = "in") -> list[Arrival]:
        return list(reversed(self.store.inboxes.arrivals(name)))

    def job(self, arrival: Arrival) -> Job:
        assert arrival.job_id is not None
        return self.store.job(arrival.job_id)

    def taken(self, arrival: Arrival) -> Path:
        return folders.path(self.folder_root, arrival.job_id or 0) / arrival.name


def open_house(place: Path, url: str) -> House:
    return House(place, url, open_store(url))


@pytest.fixture
def place() -> Iterator[Path]:
    """In memory, since each of a hundred crashes syncs some twenty times."""
    with tempfile.TemporaryDirectory(prefix="spinney-intake-", dir=in_memory()) as folder:
        yield Path(folder)


@pytest.fixture
def house(place: Path) -> Iterator[House]:
    made = open_house(place, new_store(place / "spinney.db"))
    with closing(made.store):
        yield made


def why(folder: Path, name: str) -> str:
    return (folder / "rejected" / f"{name}.why.txt").read_text()


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# --- when something is taken ---------------------------------------------------------------------


def test_a_file_that_rests_is_moved_into_a_new_jobs_folder(house: House) -> None:
    folder = house.inbox()
    (folder / "a b.zip").write_bytes(b"bytes")
    owner = dropped_files.owner(os.getuid())

    assert house.step() == (0, None)
    assert house.arrivals() == []
    house.clock_s += 5
    assert house.step() == (1, None)

    (arrival,) = house.arrivals()
    assert (arrival.name, arrival.outcome, arrival.owner) == ("a b.zip", ArrivalOutcome.TAKEN, owner)
    assert arrival.sha256 == hashlib.sha256(b"bytes").hexdigest()
    job = house.job(arrival)
    assert (job.state, job.submitter, job.params) == (State.PENDING, owner, {"file": "a b.zip"})
    assert house.taken(arrival).read_bytes() == b"bytes"
    assert left(folder) == []
    assert house.settle() == (0, None)


def test_a_file_that_is_written_to_waits(house: House) -> None:
    folder = house.inbox()
    for text in ("a", "ab", "abc"):
        (folder / "a.txt").write_text(text)
        assert house.step().jobs == 0
        house.clock_s += 4
    assert house.step().jobs == 0
    house.clock_s += 1
    assert house.step().jobs == 1


def test_a_file_that_somebody_has_open_for_writing_waits_though_it_does_not_change(house: House) -> None:
    folder = house.inbox()
    with (folder / "a.txt").open("w") as file:
        file.write("a")
        file.flush()
        assert house.settle() == (0, None)
    assert house.step().jobs == 1


def test_one_that_is_said_to_be_ready_is_taken_at_once_and_what_says_so_goes(house: House) -> None:
    folder = house.inbox()
    (folder / "a.txt").write_text("a")
    (folder / "a.txt.ready").touch()
    (folder / "b.txt.ready").touch()
    assert house.step().jobs == 1
    assert left(folder) == ["b.txt.ready"]


def test_a_folder_does_not_say_that_a_file_is_ready_and_stays_beside_it(house: House) -> None:
    folder = house.inbox()
    (folder / "a.txt").write_text("a")
    (folder / "a.txt.ready").mkdir()
    assert house.step() == (0, None)
    assert house.settle() == (1, None)
    assert left(folder) == ["a.txt.ready"]


def test_a_scan_takes_what_does_not_rest_yet_once(house: House) -> None:
    folder = house.inbox()
    (folder / "a.txt").write_text("a")
    assert house.step().jobs == 0
    house.store.inboxes.scan("in", ANN, now_us=NOW_US)
    assert house.step().jobs == 1
    house.store.inboxes.report("in", house.node, None, scanned_us=NOW_US)
    (folder / "b.txt").write_text("b")
    assert house.step().jobs == 0


def test_hidden_and_partial_files_are_passed_over(house: House) -> None:
    folder = house.inbox()
    names = [".hidden", "a.part", "b.tmp"]
    for name in names:
        (folder / name).write_text("x")
    assert house.settle() == (0, None)
    assert left(folder) == names


def test_a_folder_is_taken_whole_when_nothing_in_it_changes_any_more(house: House) -> None:
    folder = house.inbox()
    (folder / "d" / "below").mkdir(parents=True)
    (folder / "d" / "b.txt").write_text("b")
    house.step()
    house.clock_s += 4
    (folder / "d" / "below" / "a.txt").write_text("aa")
    house.step()
    house.clock_s += 4
    assert house.step().jobs == 0
    house.clock_s += 1
    assert house.step().jobs == 1

    (arrival,) = house.arrivals()
    lines = "".join(
        f"{hashlib.sha256(text.encode()).hexdigest()}  {path}\n"
        for path, text in (("b.txt", "b"), ("below/a.txt", "aa"))
    )
    assert (arrival.size, arrival.sha256) == (3, hashlib.sha256(lines.encode()).hexdigest())
    assert (house.taken(arrival) / "below" / "a.txt").read_text() == "aa"


def test_a_paused_inbox_takes_nothing_but_ends_what_was_begun(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = house.inbox()
    (folder / "a.txt").write_text("a")
    with monkeypatch.context() as broken:
        broken.setattr(folders, "make", raises(OSError(errno.ENOSPC, "No space left on device")))
        assert house.settle() == (0, "'a.txt' cannot be taken: No space left on device")
    (folder / "b.txt").write_text("b")
    house.store.inboxes.pause("in", ANN, paused=True, now_us=NOW_US)
    assert house.step() == (1, None)
    assert house.settle() == (0, None)
    assert left(folder) == ["b.txt"]


def raises(error: Exception) -> Callable[..., Any]:
    def call(*args: object, **kwargs: object) -> Any:
        raise error

    return call


# --- what is rejected ----------------------------------------------------------------------------


def test_what_is_no_file_or_has_a_hostile_name_is_rejected_with_the_reason(house: House) -> None:
    folder = house.inbox()
    (folder / "secret").symlink_to("/etc/passwd")
    os.mkfifo(folder / "pipe")
    (folder / "line\nend").write_text("x")
    (folder / "-rf").write_text("x")
    os.close(os.open(os.fsencode(folder) + b"/\xff", os.O_CREAT))
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "s"))
    (folder / "d").mkdir()
    (folder / "d" / "out").symlink_to("/etc")

    assert house.settle() == (0, None)

    assert left(folder) == ["rejected"]
    assert "it is a link, and no file" in why(folder, "secret")
    assert (folder / "rejected" / "secret").is_symlink()
    assert "a pipe" in why(folder, "pipe")
    assert "a socket" in why(folder, "s")
    assert "cannot be printed" in why(folder, "line\\nend")
    assert "cannot be printed" in why(folder, "\\udcff")
    assert "begins with '-'" in why(folder, "-rf")
    assert "'out' in it is a link" in why(folder, "d")
    assert {a.outcome for a in house.arrivals()} == {ArrivalOutcome.REJECTED}
    assert {a.job_id for a in house.arrivals()} == {None}


def test_the_same_bytes_are_refused_and_those_of_one_name_do_not_replace_each_other(house: House) -> None:
    folder = house.inbox()
    for name in ("a", "b", "b"):
        (folder / name).write_text("same")
        house.settle()
    first, *_ = house.arrivals()
    assert [a.outcome for a in house.arrivals()] == [
        ArrivalOutcome.TAKEN,
        ArrivalOutcome.REJECTED,
        ArrivalOutcome.REJECTED,
    ]
    assert f"became job {first.job_id}" in why(folder, "b")
    assert left(folder / "rejected") == ["3-b", "3-b.why.txt", "b", "b.why.txt"]

    house.inbox(duplicates="accept")
    (folder / "c").write_text("same")
    assert house.settle().jobs == 1


def test_a_name_that_names_no_lock_is_rejected_and_the_others_are_taken(house: House) -> None:
    stage = StageSpec(name="work", locks=(LockSpec(template="file:{file}"),))
    schema = {"type": "object", "properties": {"file": {"type": "string"}}}
    house.store.register([TypeSpec(name="read", stages=(stage,), schema=schema)], ())
    folder = house.inbox()
    for name in ("a(1).zip", "b.zip"):
        (folder / name).write_text(name)
    assert house.settle() == (1, None)
    assert "cannot name a lock" in why(folder, "a(1).zip")
    assert left(folder) == ["rejected"]


def test_no_link_leads_out_of_what_was_dropped(house: House) -> None:
    folder = house.inbox()
    (folder / "a.txt").write_text("a")
    drops = DropFolder(folder)
    drop = drops.look("a.txt")
    assert drop is not None
    (folder / "a.txt").unlink()
    (folder / "a.txt").symlink_to("/etc/hostname")
    with pytest.raises(OSError, match="symbolic links"):
        drops.hashed("a.txt", drop)


def test_rejected_that_is_a_link_is_not_followed(house: House, tmp_path: Path) -> None:
    folder = house.inbox()
    (tmp_path / "elsewhere").mkdir()
    (folder / "rejected").symlink_to(tmp_path / "elsewhere")
    (folder / "-x").write_text("x")
    assert "rejected is no folder; remove it" in (house.step().problem or "")
    assert left(tmp_path / "elsewhere") == []
    (folder / "rejected").unlink()
    assert house.step() == (0, None)
    assert left(folder / "rejected") == ["-x", "-x.why.txt"]


# --- what happens meanwhile ----------------------------------------------------------------------


def interrupted(house: House, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Arrival]:
    """A file whose job exists, and that could not be moved yet."""
    folder = house.inbox()
    (folder / "a.txt").write_text("a")
    with monkeypatch.context() as broken:
        broken.setattr(DropFolder, "place", raises(OSError(errno.EIO, "Input/output error")))
        house.settle()
    (arrival,) = house.arrivals()
    assert (arrival.outcome, house.job(arrival).state) == (ArrivalOutcome.TAKING, State.HELD)
    return folder, arrival


def test_one_that_is_removed_before_it_was_taken_makes_no_job_that_runs(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, arrival = interrupted(house, monkeypatch)
    (folder / "a.txt").unlink()
    assert house.step() == (0, None)
    (arrival,) = house.arrivals()
    assert (arrival.outcome, house.job(arrival).state) == (ArrivalOutcome.REJECTED, State.CANCELLED)
    assert left(folder) == []


def test_one_that_is_replaced_before_it_was_taken_comes_as_a_new_one(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, _ = interrupted(house, monkeypatch)
    (folder / "a.txt").write_text("other")
    assert house.settle().jobs == 1
    before, after = house.arrivals()
    assert house.job(before).state is State.CANCELLED
    assert house.taken(after).read_text() == "other"


def test_one_whose_job_is_cancelled_meanwhile_is_rejected(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, arrival = interrupted(house, monkeypatch)
    job_verbs.cancel(house.store, arrival.job_id or 0, tree=False, by="ann", reason="no", now_us=NOW_US)
    assert house.step() == (0, None)
    assert "was cancelled" in why(folder, "a.txt")
    assert left(folder) == ["rejected"]


def test_one_that_cannot_be_taken_does_not_keep_the_others(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = house.inbox()
    for name in ("a", "b", "c"):
        (folder / name).write_text(name)
    place = DropFolder.place

    def only_some(self: DropFolder, arrival: Arrival, target: Path) -> bool:
        if arrival.name == "b":
            raise OSError(errno.EIO, "Input/output error")
        return place(self, arrival, target)

    with monkeypatch.context() as broken:
        broken.setattr(DropFolder, "place", only_some)
        assert house.settle() == (2, "'b' cannot be taken: Input/output error")
    assert house.step() == (1, None)
    assert len(house.arrivals()) == 3


def test_what_no_job_can_be_made_of_stays_where_it_is(house: House) -> None:
    folder = house.inbox(options={"collection": "x"})
    inbox = house.store.inboxes.all()[0]
    gone = Actor(by="eve", call="c2", account="eve")
    house.store.inboxes.put(inbox, gone, now_us=NOW_US)
    (folder / "a.txt").write_text("a")
    assert "its maker eve was deleted" in (house.settle().problem or "")
    assert left(folder) == ["a.txt"]


def test_a_node_that_ends_stops_reading(house: House) -> None:
    folder = house.inbox()
    (folder / "a.txt").write_text("a")
    drops = DropFolder(folder, lambda: True)
    drop = drops.look("a.txt")
    assert drop is not None
    with pytest.raises(Stopped):
        drops.hashed("a.txt", drop)


# --- other file systems --------------------------------------------------------------------------


@pytest.fixture
def apart(house: House, monkeypatch: pytest.MonkeyPatch) -> House:
    """As if the inbox were on another file system than the jobs' folders."""
    keep_apart(house, monkeypatch)
    return house


def keep_apart(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    rename = os.rename

    def within(source: Any, target: Any, **dirs: Any) -> None:
        sides = {Path(os.fsdecode(p)).is_relative_to(house.folder_root) for p in (source, target)}
        if len(sides) == 2:
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        rename(source, target, **dirs)

    monkeypatch.setattr(os, "rename", within)


def test_what_cannot_be_renamed_is_copied_and_compared(apart: House) -> None:
    folder = apart.inbox()
    (folder / "d").mkdir()
    (folder / "d" / "run.sh").write_text("#!")
    (folder / "d" / "run.sh").chmod(0o755)
    (folder / "a.txt").write_bytes(os.urandom(3_000_000))
    digest = hashlib.sha256((folder / "a.txt").read_bytes()).hexdigest()

    assert apart.settle().jobs == 2

    file, tree = apart.arrivals()
    assert hashlib.sha256(apart.taken(file).read_bytes()).hexdigest() == digest
    assert os.access(apart.taken(tree) / "run.sh", os.X_OK)
    assert left(folder) == []
    assert left(apart.taken(file).parent) == ["a.txt"]


def test_a_copy_that_differs_is_not_taken_for_the_file(apart: House, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = apart.inbox()
    (folder / "a.txt").write_text("right")
    with monkeypatch.context() as broken:
        broken.setattr(DropFolder, "_copy_file", lambda self, fd, target: target.write_text("wrong"))
        assert apart.settle() == (0, "'a.txt' cannot be taken: its copy differs from it; see the disk")
    (arrival,) = apart.arrivals()
    assert apart.job(arrival).state is State.HELD
    assert apart.step().jobs == 1
    assert apart.taken(arrival).read_text() == "right"


@pytest.fixture
def far(place: Path) -> Iterator[Path]:
    """A folder on another file system than that of ``place``."""
    with tempfile.TemporaryDirectory(prefix="spinney-intake-", dir="/var/tmp") as folder:
        if Path(folder).stat().st_dev == place.stat().st_dev:
            pytest.skip("there is no second file system here")
        yield Path(folder)


def test_a_file_comes_from_another_file_system(house: House, far: Path) -> None:
    inbox = Inbox(name="far", folder=str(far), type="read", rest_s=0)
    house.store.inboxes.put(inbox, ANN, now_us=NOW_US)
    (far / "a.txt").write_text("a")
    assert house.step("far").jobs == 1
    (arrival,) = house.arrivals("far")
    assert house.taken(arrival).read_text() == "a"
    assert left(far) == []


def test_a_folder_that_is_not_writable_is_told(place: Path) -> None:
    folder = DropFolder(place / "closed")
    folder.path.mkdir()
    assert folder.problem() is None
    folder.path.chmod(0o555)
    read, write = os.pipe()
    child = os.fork()  # root may write anywhere
    if child == 0:
        if os.geteuid() == 0:
            os.setuid(65534)
        os.write(write, (folder.problem() or "").encode())
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    os.close(write)
    assert "is not writable for" in os.read(read, 1000).decode()
    os.close(read)


# --- crashes -------------------------------------------------------------------------------------

_CALLS = ("rename", "unlink", "mkdir", "fsync", "rmdir")
_VERBS = ("arrive", "withdraw", "finish")


def dies_at(number: int, house: House, name: str, *, apart: bool) -> bool:
    """Look into the inbox in another process, which is killed at this point: before or after a call that changes the
    disk or the store. Returns whether there was such a point."""
    house.store.close()  # which the next use opens again: a child cannot use what was open at the fork
    child = os.fork()
    if child == 0:
        try:
            patch = pytest.MonkeyPatch()
            if apart:
                keep_apart(house, patch)
            store, points = open_store(house.url), iter(range(1, 10_000))

            def point() -> None:
                if next(points) == number:
                    os.kill(os.getpid(), signal.SIGKILL)

            def between(call: Callable[..., Any]) -> Callable[..., Any]:
                def checked(*args: Any, **kwargs: Any) -> Any:
                    point()
                    answer = call(*args, **kwargs)
                    point()
                    return answer

                return checked

            for call in _CALLS:
                setattr(os, call, between(getattr(os, call)))
            for verb in _VERBS:
                setattr(store.inboxes, verb, between(getattr(store.inboxes, verb)))
            intake = house.intake(house.node, store)
            inbox = next(i for i in store.inboxes.all() if i.name == name)
            intake.step(inbox)
            os._exit(0)
        finally:
            os._exit(1)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or os.waitstatus_to_exitcode(status) == 0
    return os.WIFSIGNALED(status)


def drop_file(folder: Path) -> None:
    (folder / "a.zip").write_bytes(b"bytes")
    (folder / "a.zip.ready").touch()


def drop_folder_(folder: Path) -> None:
    (folder / "a.zip" / "below").mkdir(parents=True)
    (folder / "a.zip" / "below" / "b").write_bytes(b"bytes")


def check_taken(house: House, name: str) -> None:
    (arrival,) = house.arrivals(name)
    assert arrival.outcome is ArrivalOutcome.TAKEN
    job = house.job(arrival)
    assert job.state is State.PENDING
    inside = [p for p in house.taken(arrival).parent.rglob("*") if p.is_file()]
    assert [p.read_bytes() for p in inside] == [b"bytes"]
    assert left(house.place / name) == []


@pytest.mark.parametrize(
    ("where", "drop", "apart"),
    [
        pytest.param(where, drop, apart, id=f"{where}-{kind}-{'copied' if apart else 'renamed'}")
        for where in ("sqlite", "postgresql")
        for kind, drop in (("file", drop_file), ("folder", drop_folder_))
        for apart in (False, True)
        # The store does not know what was dropped, nor how it is moved: a server needs to see each of both once.
        if LONG or where == "sqlite" or apart is (drop is drop_folder_)
    ],
)
def test_whoever_dies_wherever_each_drop_makes_one_job(
    place: Path,
    where: str,
    drop: Callable[[Path], None],
    apart: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url = new_store(place / "spinney.db") if where == "sqlite" else new_store_on_server()
    house = open_house(place, url)
    points = 0
    with closing(house.store):
        while True:
            # Given a drop, and a node that dies at the next point
            name = f"in-{points}"
            drop(house.inbox(name, rest_s=0))
            assert house.store.inboxes.serve(name, house.node, now_us=NOW_US)
            died = dies_at(points + 1, house, name, apart=apart)
            if not died:
                break
            points += 1
            # When another node takes up the inbox
            house.store.update_node(house.node, state="left", now_us=NOW_US)
            house.node = house.join(f"ash-{points}")
            with monkeypatch.context() as patch:
                if apart:
                    keep_apart(house, patch)
                assert house.step(name).problem is None
                # Then there is one job with the file, and nothing else is left
                check_taken(house, name)
                assert house.settle(name) == (0, None)
                check_taken(house, name)
        check_taken(house, name)
    assert points >= 20


def test_whoever_dies_while_something_is_rejected_leaves_it_once_in_rejected(house: House) -> None:
    first = house.inbox("first")
    (first / "a").write_text("same")
    points = 0
    while True:
        name = f"in-{points}"
        folder = house.inbox(name, rest_s=0)
        (folder / "a").write_text("same")
        house.step(name)
        (folder / "b").write_text("same")
        if not dies_at(points + 1, house, name, apart=False):
            break
        points += 1
        house.intakes.clear()  # as in a node that starts
        assert house.step(name) == (0, None)
        assert left(folder) == ["rejected"]
        assert left(folder / "rejected") == ["b", "b.why.txt"]
        assert [a.outcome for a in house.arrivals(name)] == [ArrivalOutcome.TAKEN, ArrivalOutcome.REJECTED]
    assert points >= 8


def test_two_nodes_that_both_believe_to_be_the_one_make_one_job(house: House) -> None:
    folder = house.inbox(rest_s=0)
    (folder / "a.txt").write_text("a")
    house.step(node=house.node)
    ash = house.join("ash")
    other = house.intake(ash, house.store)
    (folder / "b.txt").write_text("b")
    inbox = house.store.inboxes.all()[0]

    assert "not looked into by this node any more" in (other.step(inbox).problem or "")

    house.store.update_node(house.node, state="draining", now_us=NOW_US)
    assert house.store.inboxes.serve("in", ash, now_us=NOW_US)
    before = house.intakes["in", house.node]
    assert other.step(inbox).jobs == 1
    assert before.step(inbox) == (0, None)
    assert [a.name for a in house.arrivals()] == ["a.txt", "b.txt"]


def test_a_submission_of_another_kind_is_not_released_by_an_inbox(house: House) -> None:
    house.inbox(rest_s=0)
    held = Actor(by="bob", call="c", reason="his files")
    (job,) = house.store.submit([Submission(type="read", params=("{}",))], under=held, now_us=NOW_US).ids
    assert house.step() == (0, None)
    assert house.store.job(job).state is State.HELD
    assert json.dumps(house.store.job(job).params) == "{}"
