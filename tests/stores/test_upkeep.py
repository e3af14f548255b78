"""When the hot tables of a PostgreSQL store are vacuumed by the engine."""

from spinney.stores.sql.upkeep import EVERY, SHARE, Upkeep


class _Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_it_is_worth_it_after_so_many_jobs() -> None:
    upkeep = Upkeep(_Clock())
    upkeep.granted(EVERY - 1)
    assert not upkeep.due()
    upkeep.granted(1)
    assert upkeep.due()
    upkeep.run(lambda: None)
    assert not upkeep.due()


def test_what_takes_longer_is_done_less_often() -> None:
    clock = _Clock()
    upkeep = Upkeep(clock)

    def vacuum() -> None:
        clock.now_s += 1.0

    upkeep.granted(EVERY)
    upkeep.run(vacuum)
    upkeep.granted(10 * EVERY)
    clock.now_s += 1.0 / SHARE - 0.1
    assert not upkeep.due()
    clock.now_s += 0.2
    assert upkeep.due()
