"""When the hot tables of a PostgreSQL store are vacuumed by the engine."""

from spinney.store.sql.connection.vacuum_schedule import EVERY, SHARE, VacuumSchedule


class _Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_it_is_worth_it_after_so_many_jobs() -> None:
    vacuum_schedule = VacuumSchedule(_Clock())
    vacuum_schedule.granted(EVERY - 1)
    assert not vacuum_schedule.due()
    vacuum_schedule.granted(1)
    assert vacuum_schedule.due()
    vacuum_schedule.run(lambda: None)
    assert not vacuum_schedule.due()


def test_what_takes_longer_is_done_less_often() -> None:
    clock = _Clock()
    vacuum_schedule = VacuumSchedule(clock)

    def vacuum() -> None:
        clock.now_s += 1.0

    vacuum_schedule.granted(EVERY)
    vacuum_schedule.run(vacuum)
    vacuum_schedule.granted(10 * EVERY)
    clock.now_s += 1.0 / SHARE - 0.1
    assert not vacuum_schedule.due()
    clock.now_s += 0.2
    assert vacuum_schedule.due()
