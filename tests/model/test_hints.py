"""Suggestions in messages about unknown names."""

from spinney.model.values.hints import first_of, some_of, unknown

MANY = [f"q{n:04d}" for n in range(3_001)]


def test_a_message_lists_all_of_a_few_names() -> None:
    assert some_of(["b", "a"]) == "a, b"
    assert some_of([]) == "(none yet)"
    assert some_of(MANY[:20]).endswith("q0018, q0019")


def test_of_very_many_names_a_message_lists_the_first_and_the_number_of_the_others() -> None:
    assert some_of(MANY) == f"{', '.join(MANY[:20])}, and 2,981 more"


def test_the_first_names_stand_in_their_order_before_the_number_of_the_others() -> None:
    assert first_of(["b", "a"], 2) == "b, a"
    assert first_of(iter(["c", "b", "a"]), 2) == "c, b and 1 more"
    assert first_of(MANY) == "q0000, q0001, q0002, q0003 and 2,997 more"


def test_what_else_to_do_is_said_before_the_names() -> None:
    message = unknown("queue", "q300l", MANY, "create it")

    assert message.startswith("no queue 'q300l' is known to this store (did you mean 'q300")
    assert "; create it, or use one of: q0000, q0001, " in message
    assert len(message) < 300


def test_where_there_are_no_names_only_what_else_to_do_is_said() -> None:
    assert unknown("job type", "a", [], "start a node").endswith("is known to this store; start a node")
