"""Lists of jobs on their way to a worker."""

from spinney.node.dispatch.job_lists import LIST_CHARS, messages
from spinney.node.workers.wire import LIMIT_BYTES, pack


def row(n: int, params: str = "{}") -> list[object]:
    return [n, 100 + n, 1, params, None, n]


def numbers(message: list[tuple[str, str, list[list[object]]]]) -> list[object]:
    return [row[0] for _, _, rows in message for row in rows]


def test_messages_are_cut_to_lists_in_order() -> None:
    groups = [("t", "s", [row(n) for n in range(5)]), ("u", "s", [row(n) for n in range(5, 8)])]
    split = list(messages(groups, 3))
    assert [numbers(message) for message in split] == [[0, 1, 2], [3, 4, 5], [6, 7]]


def test_large_parameters_go_in_several_messages_each_of_which_fits() -> None:
    # Given jobs with the longest parameters there may be, all of which doubles in JSON
    large = '"' * 2**20
    groups = [
        ("t", "s", [row(0)] + [row(n, large) for n in range(1, 12)]),
        ("u", "s", [row(12), row(13, large)]),
    ]

    split = list(messages(groups, 200))

    assert [n for message in split for n in numbers(message)] == list(range(14)), "all of them, in order"
    assert len(split) > 1
    for message in split:
        assert len(pack({"run": message})) < LIMIT_BYTES
        assert sum(len(str(r[3])) for _, _, rows in message for r in rows) <= LIST_CHARS


def test_what_exceeds_a_message_by_itself_goes_alone() -> None:
    huge = "x" * (LIST_CHARS + 1)
    split = list(messages([("t", "s", [row(0), row(1, huge), row(2)])], 200))
    assert [numbers(message) for message in split] == [[0], [1], [2]]


def test_no_message_is_empty() -> None:
    assert list(messages([("t", "s", [])], 200)) == []
    full = "x" * LIST_CHARS
    split = list(messages([("t", "s", [row(0, full)]), ("u", "s", [row(1, full)])], 200))
    assert [numbers(message) for message in split] == [[0], [1]]
