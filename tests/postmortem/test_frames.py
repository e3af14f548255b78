"""The document of an exception: its chain, its frames, their variables; and how it is read and walked."""

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import pytest

from spinney.model.errors import Refused, UsageError
from spinney.postmortem import documents, value_paths
from spinney.postmortem.descriptions import Bounds, Describer
from spinney.postmortem.documents import ExceptionView, summary
from spinney.postmortem.frames import capture

ROOMY = Bounds(time_s=60)


def kept(stage: Callable[[], object], bounds: Bounds = ROOMY) -> Sequence[ExceptionView]:
    """What is kept of the exception that a function raises."""
    try:
        stage()
    except BaseException as error:  # noqa: BLE001 - tests raise groups and worse
        document = capture(error, bounds=bounds)
    assert document is not None
    assert len(document) <= bounds.document_bytes
    return documents.read(document)


def divide(total: int, *rest: int, by: int = 0) -> float:
    share = {"total": total}
    return share["total"] / by


def test_frames_have_place_source_arguments_and_variables() -> None:
    (exception,) = kept(lambda: divide(3, 4))

    frame = exception.frames[-1]
    assert (exception.name, exception.message) == ("ZeroDivisionError", "division by zero")
    assert (frame.function, frame.code) == ("divide", 'return share["total"] / by')
    assert frame.arguments == ["total", "by", "rest"]
    assert summary(frame.variables["total"]) == "int = 3"
    assert summary(value_paths.follow(frame.variables, "share['total']")) == "int = 3"
    assert [number for number, _ in frame.source if number == frame.line]


def test_causes_contexts_and_members_of_groups_are_kept() -> None:
    def chained() -> NoReturn:
        try:
            divide(1)
        except ZeroDivisionError as error:
            raise ValueError("bad row") from error

    def during() -> NoReturn:
        try:
            divide(1)
        except ZeroDivisionError:
            raise KeyError("lost")  # noqa: B904 - a context is wanted

    def group() -> NoReturn:
        raise ExceptionGroup("both", [ValueError("one"), OSError("two")])

    def relations(stage: Callable[[], object]) -> list[tuple[str, str | None, int | None]]:
        return [(e.name, e.relation, e.of) for e in kept(stage)]

    assert relations(chained) == [("ValueError", None, None), ("ZeroDivisionError", "cause", 0)]
    assert relations(during) == [("KeyError", None, None), ("ZeroDivisionError", "context", 0)]
    assert relations(group)[1:] == [("ValueError", "member", 0), ("OSError", "member", 0)]


def test_a_chain_that_bites_its_tail_ends() -> None:
    def stage() -> NoReturn:
        first, second = ValueError("first"), ValueError("second")
        first.__cause__, second.__cause__ = second, first
        raise first

    assert len(kept(stage)) == 2


def test_deep_recursion_keeps_both_ends() -> None:
    def down(n: int) -> int:
        return down(n + 1)

    (exception,) = kept(lambda: down(0))

    assert len(exception.frames) == ROOMY.frames
    assert exception.hidden_frames > 800
    numbers = [summary(f.variables["n"]) for f in exception.frames if "n" in f.variables]
    assert numbers[0] == "int = 0"
    assert int(numbers[-1].removeprefix("int = ")) > 900


@pytest.mark.parametrize("size", [2_000, 20_000, 200_000])
def test_the_document_stays_within_its_bytes(size: int) -> None:
    def wide(depth: int) -> None:
        table = [{f"column {n}": "é" * 500 for n in range(100)} for _ in range(100)]
        if depth:
            wide(depth - 1)
        raise ValueError(str(len(table)))

    def stage() -> None:
        wide(20)

    try:
        stage()
    except ValueError as error:
        document = capture(error, bounds=Bounds(document_bytes=size, time_s=60))
    assert document is None or len(document) <= size
    assert document is not None or size < 200_000


def test_nothing_is_kept_without_room() -> None:
    assert capture(ValueError(), bounds=Bounds(document_bytes=0)) is None


def test_an_exception_that_cannot_be_printed_is_kept() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def stage() -> NoReturn:
        raise Mute

    assert kept(stage)[0].message == "its message cannot be shown"


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b'{"exceptions": 3}',
        b'{"exceptions": [{"type": "E"}]}',
        b'{"exceptions": [3]}',
    ],
)
def test_what_is_no_document_is_refused(text: bytes) -> None:
    with pytest.raises(Refused, match="cannot be read"):
        documents.read(text)


ORDER: dict[str, Any] = {
    "order": {
        "type": "Order",
        "parts": [
            [
                ".rows",
                {
                    "type": "list",
                    "len": 50,
                    "cut": 49,
                    "parts": [
                        [
                            "[0]",
                            {
                                "type": "dict",
                                "parts": [
                                    ["['id']", {"type": "int", "text": "7"}],
                                    ["['a]b']", {"type": "int", "text": "8"}],
                                ],
                            },
                        ]
                    ],
                },
            ]
        ],
    }
}


@pytest.mark.parametrize(
    ("expression", "value"),
    [("order.rows[0]['id']", "7"), ('order.rows[0]["id"]', "7"), ("order.rows[0]['a]b']", "8")],
)
def test_expressions_follow_what_was_kept(expression: str, value: str) -> None:
    assert value_paths.follow(ORDER, expression)["text"] == value


@pytest.mark.parametrize("key", ["it's", 'say "no"', 'it\'s "no"', "a\\b", "line\nbreak"])
def test_keys_with_quotes_are_followed_in_either_kind_of_quotes(key: str) -> None:
    document = {"order": Describer(bounds=Bounds(time_s=60)).variable("order", {key: 5}, 10_000)[0]}
    (step,) = [*value_paths.completions(document, "order[")]
    escaped = key.replace("\\", "\\\\").replace("\n", "\\n")
    in_double, in_single = escaped.replace('"', '\\"'), escaped.replace("'", "\\'")

    for expression in (step, f'order["{in_double}"]', f"order['{in_single}']"):
        assert value_paths.follow(document, expression)["text"] == "5"


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("orders", "no variable 'orders'; it has order"),
        (r'order.rows[0]["\x"]', r"order.rows\[0\] has no \["),
        ("order.row", r"order has no .row; kept are .rows"),
        ("order.rows[3]", r"kept are \[0\], 49 more were not kept"),
        ("order.rows[0]['id'].real", "no part of it was kept"),
        ("order()", "is no step"),
        ("", "begins with no variable"),
    ],
)
def test_a_wrong_expression_says_what_there_is(expression: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        value_paths.follow(ORDER, expression)


def test_expressions_are_completed_step_by_step() -> None:
    assert [*value_paths.completions(ORDER, "or")] == ["order"]
    assert [*value_paths.completions(ORDER, "order.r")] == ["order.rows"]
    assert [*value_paths.completions(ORDER, "order.rows[0]['i")] == ["order.rows[0]['id']"]


@pytest.mark.parametrize("spoken", [1, 39])
def test_a_message_that_is_cut_within_a_secret_shows_no_part_of_it(spoken: int) -> None:
    secret = "x1y2z3" * 7
    error = ValueError(f"{secret * 30}{'-' * (740 - spoken)}{secret}")

    document = capture(error, bounds=ROOMY, redact=lambda text: text.replace(secret, "*"))

    assert document is not None
    assert b"x1" not in document
