"""Who is woken how: by a datagram within a run-time directory, through the store beyond it."""

import asyncio
from pathlib import Path

from spinney.model.values.paths import socket_name
from spinney.wakeup import wake_all
from spinney.wakeup.local import received_wakeups, run_dir_id


class Announced(list[str]):
    """A store that notes who announced something."""

    def notify(self, sender: str = "") -> None:
        self.append(sender)


async def test_nodes_of_the_run_time_directory_get_a_datagram_and_others_hear_from_where(
    tmp_path: Path,
) -> None:
    store, woken = Announced(), asyncio.Event()
    async with received_wakeups(tmp_path, socket_name("oak", 1), woken.set):
        wake_all(store, tmp_path)
        await asyncio.wait_for(woken.wait(), 5)
    assert store == [run_dir_id(tmp_path)] != [""]


def test_without_a_run_time_directory_everybody_hears_it(tmp_path: Path) -> None:
    store = Announced()
    wake_all(store, None)
    wake_all(store, tmp_path / "missing")
    assert store == ["", ""]


def test_places_are_told_apart_and_known_by_any_path(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    (tmp_path / "link").symlink_to(one)
    assert run_dir_id(one) == run_dir_id(str(tmp_path / "link")) != run_dir_id(two)
