"""Several processes at once on one inventory, and processes that are killed."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest

from spinney.apps.ingest.inventory import LocalIdTaken, open_inventory
from spinney.apps.ingest.inventory.inventory import Inventory
from spinney.files.paths import NotAdmitted

from .words import ARK, contents, count, entry, sums

FORK = multiprocessing.get_context("fork")
ANSWER_S = 60.0
"""After that long the test has failed; it is not waited for otherwise."""


def at_once(url: str, *works: Callable[[Inventory], Any]) -> list[Any]:
    """Each in a process of its own, let go together; what each returned, or the refusal that it met."""
    start = FORK.Barrier(len(works))
    answers = [FORK.Pipe(duplex=False) for _ in works]

    def run(n: int) -> None:
        with open_inventory(url) as inventory:
            start.wait(ANSWER_S)
            try:
                answers[n][1].send(works[n](inventory))
            except NotAdmitted as refused:
                answers[n][1].send(type(refused))

    processes = [FORK.Process(target=run, args=(n,)) for n in range(len(works))]
    for process in processes:
        process.start()
    try:
        for process, (receive, _) in zip(processes, answers, strict=True):
            assert receive.poll(ANSWER_S), f"no answer; exit code {process.exitcode}"
        return [receive.recv() for receive, _ in answers]
    finally:
        for process in processes:
            process.join(ANSWER_S)
            assert process.exitcode == 0


def test_no_number_is_given_twice_and_no_key_gets_two(url: str) -> None:
    def numbered(keys: list[str]) -> Callable[[Inventory], dict[str, int]]:
        def work(inventory: Inventory) -> dict[str, int]:
            numbers: dict[str, int] = {}

            def each(mine: list[str]) -> None:
                numbers.update((key, inventory.number("m", key)) for key in mine)

            threads = [threading.Thread(target=each, args=(half,)) for half in (keys[::2], keys[1::2])]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return numbers

        return work

    # Every key is asked for by two processes, in other orders.
    shared = [[f"k{n}" for n in range(12)], [f"k{n}" for n in reversed(range(12))]]
    own = [[f"{name}{n}" for n in range(12)] for name in "ab"]

    answers = at_once(url, *map(numbered, shared + own))

    assert answers[0] == answers[1]
    number_of = {key: number for answer in answers for key, number in answer.items()}
    assert len(number_of) == len(set(number_of.values())) == 36


def test_a_local_id_goes_to_one_of_those_who_want_it(url: str, inventory: Inventory) -> None:
    names = ["m-1", "m-2", "m-3"]
    arks = [f"ark:/9/{n}" for n in range(4)]

    def bound(ark: str, local_ids: list[str]) -> Callable[[Inventory], None]:
        return lambda here: here.bind("maps", local_ids, ark)

    # In opposite orders, so that whoever locked as he was told would wait for one who waits for him.
    answers = at_once(url, *(bound(ark, names[:: 1 if n % 2 else -1]) for n, ark in enumerate(arks)))

    assert sorted(map(str, answers)) == sorted(map(str, [None, LocalIdTaken, LocalIdTaken, LocalIdTaken]))
    winner = arks[answers.index(None)]
    assert [inventory.ark_of("maps", name) for name in names] == [winner] * 3


def test_the_same_entry_from_several_processes_is_there_once(url: str, inventory: Inventory) -> None:
    files = {f"f{n}": str(n) for n in range(20)}

    answers = at_once(url, *[lambda here: here.record(entry(files=files, local_ids=["m-1"]))] * 3)

    assert answers == [None] * 3
    assert contents(inventory) == sums(**files)
    assert [count(inventory, table) for table in ("inv_objects", "inv_versions", "inv_files")] == [1, 1, 20]


def test_versions_of_one_object_from_several_processes_are_all_there(url: str, inventory: Inventory) -> None:
    def files(version: int) -> dict[str, str]:
        return {f"f{n}": str(version) if version % 4 == n else "" for n in range(4)}

    def recorded(versions: range) -> Callable[[Inventory], None]:
        return lambda here: [here.record(entry(version=v, files=files(v))) for v in versions] and None

    at_once(url, *(recorded(range(first, 13, 3)) for first in (1, 2, 3)))

    assert [v.version for v in inventory.object(ARK).versions] == list(range(1, 13))
    for version in range(1, 13):
        assert contents(inventory, version) == sums(**files(version))


def test_of_two_contents_of_one_version_one_is_refused(url: str, inventory: Inventory) -> None:
    answers = at_once(
        url,
        lambda here: here.record(entry(files={"a": "1", "b": ""})),
        lambda here: here.record(entry(files={"a": "2", "c": ""})),
    )

    assert sorted(map(str, answers)) == sorted(map(str, [None, NotAdmitted]))
    assert contents(inventory) == [sums(a="1", b=""), sums(a="2", c="")][answers.index(None)]


def test_several_that_make_the_tables_at_once_all_find_them_made(bare_url: str) -> None:
    def made(inventory: Inventory) -> int:
        inventory.init()
        return inventory.number("m", str(os.getpid()))

    assert sorted(at_once(bare_url, *[made] * 4)) == [1, 2, 3, 4]


@pytest.mark.parametrize("after", [1, 7])
def test_a_kill_leaves_each_version_whole_or_not_there(url: str, inventory: Inventory, after: int) -> None:
    receiver, sender = FORK.Pipe(duplex=False)

    def record_without_end() -> None:
        with open_inventory(url) as here:
            for n in range(10**6):
                here.record(entry(f"ark:/9/{n}", files=files, local_ids=[str(n)]))
                sender.send(n)

    files = {f"f{n}": str(n) for n in range(50)}
    process = FORK.Process(target=record_without_end)
    process.start()
    sender.close()
    answers = [receiver.recv() for _ in range(after)]
    os.kill(process.pid, signal.SIGKILL)
    process.join()

    there = inventory.find(limit=1000)
    assert len(there) >= len(answers)
    for n, number in enumerate(there):
        assert (number.ark, number.local_ids) == (f"ark:/9/{n}", [str(n)])
        assert contents(inventory, ark=number.ark) == sums(**files)
    for n in range(len(there) + 2):
        inventory.record(entry(f"ark:/9/{n}", files=files, local_ids=[str(n)]))
    assert count(inventory, "inv_files") == 50 * (len(there) + 2)
