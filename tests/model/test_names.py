"""Names become parts of files, pages and shell words, so that nothing in them may lead elsewhere."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.model.errors import BadName, UsageError
from spinney.model.values import lock_names, names

PATH_PARTS = ["..", "", "/", "a/b", "../a", "a/..", "a..b", "\\", "a\\b", ".hidden", "-rf", "a\n", "a\0"]


@pytest.mark.parametrize("text", [*PATH_PARTS, ".", "~", "a b"])
def test_a_name_admits_no_path_parts(text: str) -> None:
    with pytest.raises(BadName):
        names.name("queue", text)


@pytest.mark.parametrize("text", [*PATH_PARTS, " x"])
def test_a_lock_name_admits_no_path_parts(text: str) -> None:
    with pytest.raises(BadName):
        names.lock_name(text)


@pytest.mark.parametrize("text", ["default", "svc_acct", "a.b:c@d-e", "0", "_x", "A" * 100])
def test_usual_names_are_taken_as_they_are(text: str) -> None:
    assert names.name("queue", text) == text


def test_one_number_makes_one_lock_however_it_is_written() -> None:
    written = [1, 1.0, 1.5, -0.0, 0, 1e300]

    names_ = [lock_names.render("depth:{depth}", {"depth": depth}) for depth in written]

    assert names_ == ["depth:1", "depth:1", "depth:1.5", "depth:0", "depth:0", "depth:1e+300"]


@pytest.mark.parametrize("text", ["receiver:SG-0613BB000593", "a b=c,d+e@f", "x" * 200])
def test_usual_lock_names_are_taken_as_they_are(text: str) -> None:
    assert names.lock_name(text) == text


@pytest.mark.parametrize("text", ["x" * 101, None, 7])
def test_too_long_or_no_text_is_refused(text: object) -> None:
    with pytest.raises(BadName):
        names.name("queue", text)  # type: ignore[arg-type]


@given(st.text(max_size=120))
def test_whatever_is_let_through_is_one_harmless_part_of_a_path(text: str) -> None:
    try:
        names.name("type", text)
    except BadName:
        return
    assert text.isascii()
    assert text.isprintable()
    assert not set(text) & set("/\\ ~$`'\"*?<>|;&(){}[]!#%^=,+")
    assert ".." not in text
    assert text[0] not in ".-"


@given(st.text(max_size=20))
def test_a_label_is_printable_or_refused(text: str) -> None:
    try:
        names.label("share", text)
    except BadName:
        assert not text or not text.isprintable()
    else:
        assert text
        assert text.isprintable()


def test_the_refusal_says_what_a_name_may_be() -> None:
    with pytest.raises(BadName, match=r"'a/b' cannot name a queue: use 1 to 100 letters"):
        names.name("queue", "a/b")


def test_of_a_text_that_is_much_too_long_the_refusal_quotes_the_beginning() -> None:
    with pytest.raises(BadName) as refused:
        names.label("reason", "a" * 5_000)

    assert str(refused.value) == (
        f"'{'a' * 60}…' (5,000 characters) cannot be a reason: use 1 to 500 printable characters"
    )


def test_a_text_that_is_not_too_long_is_quoted_up_to_what_is_wrong_with_it() -> None:
    text = "a" * 400 + "\a"

    with pytest.raises(BadName) as refused:
        names.label("share", text)

    assert str(refused.value) == f"{text!r} cannot be a share: use 1 to 500 printable characters"


def test_a_bad_name_is_a_mistake_of_usage() -> None:
    assert issubclass(BadName, UsageError)
    assert BadName.exit_code == 2
