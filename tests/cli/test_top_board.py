"""What keys do to the board of ``top``, and how the board fits a terminal; without a terminal."""

from collections.abc import Sequence
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from spinney.features.stats.top_board import LISTED, Action, Board, Item, KeyCommand, Kind, Mode, Snapshot
from spinney.features.stats.top_view import picture
from spinney.model.attempts.failure_groups import Failure
from spinney.model.jobs import Job
from spinney.model.operators.bulk_orders import Verb
from spinney.model.operators.stats import QueueStats, Stats
from spinney.model.states import State
from spinney.terminal.output.screen import Keys


def queue(name: str, **figures: int) -> QueueStats:
    counted = dict.fromkeys(("running", "pending", "scheduled", "waiting", "held", "failed"), 0) | figures
    return QueueStats(queue=name, limit=None, rate=0.0, **counted)


def job(number: int, **fields: Any) -> Job:
    plain: dict[str, Any] = {
        "id": number,
        "type": "noop",
        "stage": "run",
        "state": State.RUNNING,
        "queue": "default",
        "priority": 50,
        "share": "1",
        "root_id": number,
        "lineage": f"{number:012d}",
        "params": {},
        "created_us": 1,
        "attempts": 0,
        "interruptions": 0,
        "warnings": 0,
        "cancelling": False,
    }
    empty: dict[str, Any] = dict.fromkeys(Job.__dataclass_fields__)
    return Job(**empty | plain | fields)


def failure(mark: str) -> Failure:
    return Failure(
        fingerprint=mark * 16,
        type="noop",
        stage="run",
        exception="ValueError",
        message="no",
        first_us=1,
        last_us=2,
        jobs=3,
    )


def look(
    queues: Sequence[str] = ("default",), jobs: Sequence[int] = (), failures: Sequence[str] = ()
) -> Snapshot:
    stats = Stats(
        at_us=1,
        window_s=60,
        rate=0,
        states={"pending": 1},
        queues=[queue(name, pending=1) for name in queues],
        stages=[],
        shares=[],
        nodes=[],
    )
    return Snapshot(stats=stats, jobs=[job(n) for n in jobs], failures=[failure(mark) for mark in failures])


def board(**parts: Sequence[str] | Sequence[int]) -> Board:
    made = Board()
    made.see(look(**parts))  # type: ignore[arg-type]
    return made


def press(on: Board, *keys: str) -> Action | KeyCommand | None:
    """Press them all; what the last came to."""
    frame = None
    for key in keys:
        frame = on.press(key)
    return frame


def test_the_selection_goes_through_all_parts_and_stays_within() -> None:
    made = board(queues=["a", "b"], jobs=[7], failures=["f"])

    seen = [made.selected]
    for _ in range(5):
        made.press("down")
        seen.append(made.selected)

    last = Item(Kind.FAILURE, "f" * 16)
    assert seen == [Item(Kind.QUEUE, "a"), Item(Kind.QUEUE, "b"), Item(Kind.JOB, "7"), last, last, last]
    press(made, "home", "up")
    assert made.selected == Item(Kind.QUEUE, "a")
    press(made, "end")
    assert made.selected == last


def test_the_selection_follows_what_was_selected() -> None:
    made = board(jobs=[7, 8, 9])
    press(made, "down", "down")
    assert made.selected == Item(Kind.JOB, "8")

    made.see(look(jobs=[3, 7, 8]))
    assert made.selected == Item(Kind.JOB, "8")

    made.see(look(jobs=[3, 7, 9]))
    assert made.selected == Item(Kind.JOB, "9"), "what is gone leaves the line to its successor"

    made.see(look(queues=[]))
    assert made.selected is None


def test_nothing_is_done_before_it_was_confirmed_and_given_its_reason() -> None:
    made = board(jobs=[7])

    steps = [press(made, key) for key in ("down", "c", "y", "n", "o", "backspace", "o", "enter")]

    action = Action(verb=Verb.CANCEL, item=Item(Kind.JOB, "7"), reason="no")
    assert steps == [None] * 7 + [action]
    assert (made.mode, made.pending_action) == (Mode.LOOK, None)


def test_what_is_asked_about_stays_what_it_was() -> None:
    made = board(jobs=[7, 8])
    press(made, "down", "c")

    made.see(look(jobs=[8]))

    action = press(made, "y", "enter")
    assert isinstance(action, Action)
    assert action.item == Item(Kind.JOB, "7")


@pytest.mark.parametrize(
    "keys", [("n",), ("q",), ("enter",), ("escape",), ("y", "escape"), ("t", "x", "escape")]
)
def test_whatever_is_not_yes_drops_it(keys: tuple[str, ...]) -> None:
    made = board(jobs=[7])

    assert press(made, "down", "c", *keys) is None
    assert (made.mode, made.pending_action, made.message) == (Mode.LOOK, None, "nothing was done")


def test_all_below_can_be_cancelled_too() -> None:
    made = board(jobs=[7])

    action = press(made, "down", "c", "t", "enter")

    assert action == Action(verb=Verb.CANCEL, item=Item(Kind.JOB, "7"), tree=True)


def test_a_hold_needs_a_reason() -> None:
    made = board()

    assert press(made, "h", "y", " ", "enter") is None
    assert "enter a reason" in made.message
    action = press(made, "x", "enter")
    assert isinstance(action, Action)
    assert action.reason == " x"


@pytest.mark.parametrize(
    ("key", "message"), [("c", "cancel is for a job"), ("r", "retry is for a job or a failure")]
)
def test_what_cannot_be_done_to_a_queue_is_said(key: str, message: str) -> None:
    made = board()

    press(made, key)

    assert message in made.message
    assert made.mode is Mode.LOOK


def test_with_nothing_to_select_every_key_is_harmless() -> None:
    made = Board()

    for key in ("up", "down", "home", "end", "page up", "h", "r", "u", "c", "e", "x", "é", "enter", "escape"):
        assert press(made, key) is None


def test_tab_goes_round_the_lists() -> None:
    made = board()

    seen = []
    for _ in LISTED:
        assert made.press("tab") is KeyCommand.REFRESH
        seen.append(made.listed)

    assert seen == [*LISTED[1:], LISTED[0]]
    made.press("back tab")
    assert made.listed is LISTED[-1]


def test_other_wishes() -> None:
    made = board(jobs=[7])

    assert press(made, "q") is KeyCommand.QUIT
    assert press(made, "e") is None
    assert press(made, "down", "e") is KeyCommand.EXPLAIN
    press(made, "?")
    assert made.mode is Mode.HELP
    assert press(made, "q") is None, "any key goes back"
    assert made.mode is Mode.LOOK


# --- keys ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        (b"q", ["q"]),
        (b"\x1b[A\x1b[B\x1bOA", ["up", "down", "up"]),
        (b"\x1b", ["escape"]),
        (b"\r\n\t\x7f\x15", ["enter", "enter", "tab", "backspace", "clear"]),
        (b"\x1b[5~\x1b[6~\x1b[H\x1b[F", ["page up", "page down", "home", "end"]),
        (b"\x1b[1;5A\x1b[200~x", ["x"]),
        (b"\x00\x01", []),
        ("ä€😀".encode(), ["ä", "€", "😀"]),
        (b"\xff", ["�"]),
    ],
)
def test_bytes_become_keys(data: bytes, keys: list[str]) -> None:
    assert Keys().read(data) == keys


def test_a_character_may_come_in_two_reads() -> None:
    keys = Keys()

    assert keys.read("é".encode()[:1]) + keys.read("é".encode()[1:]) == ["é"]


# --- the picture ---------------------------------------------------------------------------------


def drawn(made: Board, columns: int, lines: int) -> list[str]:
    console = Console(width=columns, height=lines, record=True, file=StringIO(), color_system=None)
    console.print(picture(made, (columns, lines), 1_700_000_000_000_000))
    return console.export_text().splitlines()


@pytest.mark.parametrize(("columns", "lines"), [(140, 40), (80, 24), (60, 16), (20, 10)])
def test_it_fills_the_terminal_and_no_more(columns: int, lines: int) -> None:
    made = board(queues=[f"queue{n}" for n in range(30)], jobs=range(1, 60), failures=list("abcdefghij"))

    shown = drawn(made, columns, lines)

    assert len(shown) == lines
    assert all(len(line) <= columns for line in shown)


@pytest.mark.parametrize("lines", range(1, 14))
def test_what_is_asked_is_seen_on_the_smallest_terminal(lines: int) -> None:
    made = board(queues=["a", "b", "c"], jobs=range(101, 160), failures=["a", "b"])
    press(made, "down", "down", "down", "c")

    shown = drawn(made, 80, lines)

    assert len(shown) == lines
    assert shown[-1].startswith("cancel job 101?  y: yes"), shown


@pytest.mark.parametrize("steps", [0, 5, 29, 30, 60, 88, 89, 98])
def test_what_is_selected_is_seen(steps: int) -> None:
    made = board(queues=[f"queue{n}" for n in range(30)], jobs=range(101, 160), failures=list("abcdefghij"))
    for _ in range(steps):
        made.press("down")
    assert made.selected is not None

    name = made.selected.name[:8]

    assert any(line.startswith(name) for line in drawn(made, 120, 30)), name


def test_what_users_wrote_cannot_move_the_cursor() -> None:
    made = Board()
    failed_children = look()
    made.see(Snapshot(stats=failed_children.stats, jobs=[job(7, message="a\x1b[2Jb")], failures=[]))
    made.message = "\x1b[31mred"

    shown = "\n".join(drawn(made, 140, 20))

    assert "\x1b" not in shown
    assert "a\\x1b[2Jb" in shown
