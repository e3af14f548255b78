"""How often it is looked anew at who asks, by a clock of the test's own."""

import asyncio
from dataclasses import dataclass

import pytest

from spinney.model.errors import Forbidden, StoreAway
from spinney.server.asking import RENEW_S
from spinney.server.files.following import LOOK_S
from spinney.server.identity.remembering import KEPT_S
from spinney.server.problems import Unidentified
from spinney.server.renewal import Renewal

PROMISED_S = 2.0
"""docs/server.md: so soon a change of rights is obeyed."""


@dataclass(frozen=True)
class Person:
    name: str
    role: str = "operator"


class Look:
    """Answers as the test says, and counts."""

    def __init__(self) -> None:
        self.now_s, self.looks = 100.0, 0
        self.answers: list[Person | Exception | None] = []

    async def __call__(self) -> Person | None:
        self.looks += 1
        answer = self.answers.pop(0) if self.answers else Person("ann")
        if isinstance(answer, Exception):
            raise answer
        return answer

    def renewal(self, every_s: float = 1.0) -> Renewal[Person]:
        return Renewal(
            Person("ann"), self, every_s=every_s, looked_s=self.now_s, monotonic=lambda: self.now_s
        )


def test_a_change_is_obeyed_within_what_is_promised() -> None:
    assert RENEW_S + KEPT_S + LOOK_S <= PROMISED_S


async def test_given_a_look_that_is_not_old_then_there_is_none() -> None:
    look = Look()
    renewal = look.renewal()

    look.now_s += 0.99
    assert await renewal.asker() == Person("ann")
    assert look.looks == 0
    look.now_s += 0.01
    look.answers = [Person("ann", "viewer")]
    assert await renewal.asker() == Person("ann", "viewer")
    assert await renewal.asker() == Person("ann", "viewer")
    assert look.looks == 1


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (None, Unidentified),
        (Person("bob"), Unidentified),
        (Forbidden("no"), Forbidden),
        (StoreAway("away"), StoreAway),
    ],
    ids=["nobody", "somebody else", "refused", "away"],
)
async def test_given_nobody_any_more_then_it_is_said_and_looked_again_each_time(
    answer: Person | Exception | None, error: type[Exception]
) -> None:
    look = Look()
    renewal = look.renewal()
    look.now_s += 1
    look.answers = [answer, answer]

    for _ in range(2):
        with pytest.raises(error):
            await renewal.asker()
    assert look.looks == 2


async def test_given_a_store_that_is_away_then_an_answer_waits_for_it() -> None:
    look = Look()
    renewal = look.renewal(every_s=0.0)
    look.answers = [StoreAway("away"), StoreAway("away"), Person("ann", "viewer")]

    assert await renewal.steady_asker() == Person("ann", "viewer")


async def test_given_a_long_call_and_other_rights_then_it_is_told_to_stop_once() -> None:
    look = Look()
    renewal = look.renewal(every_s=0.0)
    look.answers = [Person("ann"), StoreAway("away"), Person("ann", "viewer")]
    told: list[Forbidden] = []

    async with asyncio.timeout(10):
        await renewal.watch(told.append)

    assert "the rights of ann have changed" in str(told[0])
    assert len(told) == 1
