"""Which connection gives way, without any socket."""

import pytest

from spinney.server.connection_table import ConnectionTable, Refusal


class Line:
    """A connection."""

    def __init__(self, name: str) -> None:
        self.name, self.open = name, True

    def close(self) -> None:
        self.open = False


class Board:
    """A table, and its connections by their names: ``a1`` is one from the address ``a``, ``p1`` from a proxy."""

    def __init__(self, most: int = 100, per_address: int = 100, idle_per_address: int = 100) -> None:
        self.table = ConnectionTable[Line](
            most=most, per_address=per_address, idle_per_address=idle_per_address
        )
        self.lines: dict[str, Line] = {}

    def opened(self, *names: str) -> None:
        for name in names:
            self.lines[name] = Line(name)
            self.table.opened(self.lines[name], name[0], bounded=name[0] != "p")

    def busy(self, *names: str) -> None:
        for name in names:
            self.table.busy(self.lines[name])

    def refusal(self, name: str) -> Refusal | None:
        return self.table.refusal(self.lines[name])

    @property
    def closed(self) -> set[str]:
        return {name for name, line in self.lines.items() if not line.open}


def test_given_no_room_then_the_longest_idle_of_the_address_with_most_gives_way() -> None:
    board = Board(most=4)
    board.opened("b1", "a1", "a2", "a3")

    board.opened("c1")

    assert board.closed == {"a1"}
    assert board.refusal("c1") is None
    assert len(board.table) == 4


def test_given_one_that_was_used_since_then_it_has_been_idle_for_less_long() -> None:
    board = Board(most=2)
    board.opened("a1", "a2")
    board.busy("a1")
    board.table.idle(board.lines["a1"])

    board.opened("b1")

    assert board.closed == {"a2"}


def test_given_that_all_are_busy_then_the_new_one_has_no_place_and_leaves_none_for_good() -> None:
    board = Board(most=2)
    board.opened("a1", "a2")
    board.busy("a1", "a2")

    board.opened("b1")
    assert board.refusal("b1") is Refusal.FULL
    assert board.refusal("a1") is None, "whoever was there before has a place"
    board.opened("b2")
    assert board.closed == {"b1"}, "however many come, one waits"

    board.table.closed(board.lines["a1"])
    assert board.refusal("b2") is None


def test_given_an_address_with_as_many_as_it_may_have_then_its_own_give_way() -> None:
    board = Board(per_address=2)
    board.opened("b1", "a1", "a2", "a3")

    assert board.closed == {"a1"}


def test_given_an_address_whose_connections_are_all_busy_then_others_have_a_place_and_it_has_not() -> None:
    board = Board(per_address=2)
    board.opened("a1", "a2")
    board.busy("a1", "a2")
    board.opened("a3", "b1")

    assert board.refusal("a3") is Refusal.CROWDED
    assert board.refusal("b1") is None
    assert board.closed == set()


def test_given_an_address_with_as_many_idle_as_it_may_have_then_one_that_becomes_idle_closes_another() -> (
    None
):
    board = Board(idle_per_address=1)
    board.opened("a1")
    board.busy("a1")
    board.opened("a2")
    assert board.closed == set()

    board.table.idle(board.lines["a1"])

    assert board.closed == {"a2"}


@pytest.mark.parametrize("limits", [{"per_address": 1}, {"idle_per_address": 1}])
def test_given_a_proxy_then_it_is_bounded_by_the_room_in_all_only(limits: dict[str, int]) -> None:
    board = Board(most=3, **limits)
    board.opened("p1", "p2", "p3")
    assert board.closed == set()

    board.opened("b1")

    assert board.closed == {"p1"}


def test_given_one_that_is_closed_twice_then_the_count_is_right() -> None:
    board = Board(most=1)
    board.opened("a1", "b1")  # evicts a1
    board.table.closed(board.lines["a1"])
    board.table.idle(board.lines["a1"])
    board.table.busy(board.lines["a1"])

    assert len(board.table) == 1
    assert board.refusal("b1") is None
