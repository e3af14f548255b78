"""What is said of output behind a message is found there again."""

import pytest

from spinney.model.attempts import remarks

LOG, LOST = remarks.elsewhere("many.log"), remarks.lost(12, "No space left on device")


@pytest.mark.parametrize("message", [None, "", "it broke", "it broke; twice"])
@pytest.mark.parametrize("texts", [(LOG,), (LOST,), (LOG, LOST)])
def test_remarks_stand_behind_the_message_and_are_found(message: str | None, texts: tuple[str, ...]) -> None:
    whole = message
    for remark in texts:
        whole = remarks.behind(whole, remark)

    assert remarks.of(whole) == "; ".join(texts)
    assert whole == "; ".join([*([message] if message else []), *texts])


@pytest.mark.parametrize("message", [None, "", "it broke"])
def test_without_a_remark_there_is_none(message: str | None) -> None:
    assert remarks.of(remarks.behind(message, None)) is None
