"""Charts over time: axes, what they say when pointed at, and who sees them; timelines of jobs."""

import re
from dataclasses import replace

import pytest

from server.conftest import World
from server.pages.test_pages import get
from spinney.commands.control import Control
from spinney.features.stats import activity_page
from spinney.features.stats.activity_page import SPANS
from spinney.model.access import AccessScope, Rights, Role
from spinney.model.outcomes import Outcome
from spinney.web.pages import time_charts, timelines
from spinney.web.pages.text_formats import lasting
from spinney.web.request_context import now_us

MINUTE_US = 60_000_000
START_US = 1_800_000_000_000_000 // (1440 * MINUTE_US) * 1440 * MINUTE_US


def test_given_values_then_columns_stand_on_the_axis_and_fill_the_width() -> None:
    starts = [START_US + n * MINUTE_US for n in range(4)]

    chart = time_charts.stacked(
        starts,
        MINUTE_US,
        {"completed": [6, 0, 3, 1], "failed": [3, 0, 0, 0]},
        lambda value: f"{value:g}",
        {"completed": "passed", "failed": "failed"},
    )

    assert [tick.label for tick in chart.y_ticks] == ["3", "6", "9"]
    assert [len(column.bars) for column in chart.columns] == [2, 0, 1, 1]
    assert chart.columns[0].bars[1].y == time_charts.TOP
    assert chart.columns[2].bars[0].y + chart.columns[2].bars[0].height == time_charts.FLOOR
    assert sum(column.width for column in chart.columns) == pytest.approx(100)
    assert chart.columns[0].title.endswith("00:00 to 00:01: passed 6, failed 3")


def test_given_missing_values_then_a_line_is_interrupted_and_zeros_break_nothing() -> None:
    starts = [START_US + n * 60 * MINUTE_US for n in range(24)]
    values: list[float | None] = [None, 2.0, 4.0, None, *[0.0] * 20]

    chart = time_charts.lines(starts, 60 * MINUTE_US, {"running": values}, str, {"running": "ran"})

    assert [len(points.split()) for points in chart.lines[0].points] == [4, 40]
    # No text stands at the very ends, where on a phone it would be cut off, or be pushed into its neighbour.
    assert [tick.label for tick in chart.x_ticks] == ["", "04:00", "08:00", "12:00", "16:00", "20:00"]
    assert (
        time_charts.lines(starts[:1], MINUTE_US, {"running": [None]}, str, {"running": "ran"}).lines[0].points
        == []
    )


@pytest.mark.parametrize(
    ("highest", "top"),
    [(0.0004, 0.0006), (0.7, 0.9), (1, 1.5), (7, 9), (10, 15), (95, 120), (40_000, 60_000)],
)
def test_given_a_highest_value_then_the_top_is_round_and_near(highest: float, top: float) -> None:
    chart = time_charts.lines(
        [0], 1, {"running": [highest]}, lambda value: f"{value:.6g}", {"running": "ran"}
    )

    assert float(chart.y_ticks[-1].label) == pytest.approx(top)


@pytest.mark.parametrize(
    ("highest", "marks"),
    [
        (0.2, ["100 ms", "200 ms", "300 ms"]),
        (70, ["30 s", "1 min", "1 min 30 s"]),
        (500, ["5 min", "10 min", "15 min"]),
        (9_000, ["1 h", "2 h", "3 h"]),
        (90_000, ["1 day", "2 days", "3 days"]),
    ],
)
def test_given_times_then_the_marks_are_round_times(highest: float, marks: list[str]) -> None:
    chart = time_charts.lines(
        [0], 1, {"running": [highest]}, lasting, {"running": "ran"}, steps=time_charts.TIME_STEPS_S
    )

    assert [tick.label for tick in chart.y_ticks] == marks


def test_given_a_slice_in_which_no_attempt_ended_then_its_title_says_that() -> None:
    starts = [START_US + n * MINUTE_US for n in range(3)]
    values, idle = {"running": [1.0, None, None]}, [True, True, False]

    chart = time_charts.lines(starts, MINUTE_US, values, str, {"running": "ran"}, idle=idle)

    ends = [column.title.rpartition(": ")[2] for column in chart.columns]
    assert ends == ["ran 1.0", "no attempt finished", "no figures"]


def test_given_a_slice_that_was_counted_later_then_no_chart_says_that_no_attempt_ended(world: World) -> None:
    world.submit("one")
    world.site.pass_(world.site.claim_one())
    late_us = now_us() + 3 * MINUTE_US
    world.store.throughput_history.record(now_us=late_us)
    control = Control(store=world.store, clock=lambda: late_us, wake_nodes=lambda: None, by="ann")

    charts = activity_page.read(control, SPANS["hour"], "", "", None).charts

    titles = [[column.title.rpartition(": ")[2] for column in chart.columns] for *_, chart in charts]
    slices = list(zip(*titles, strict=True))
    assert ("passed 1, failed 0", "no figures", "no figures") in slices
    assert ("passed 0, failed 0", "pending 0, running 0", "no attempt finished") in slices


def test_given_no_figures_then_a_column_is_a_gap_and_an_empty_chart_has_whole_numbers() -> None:
    starts = [START_US + n * MINUTE_US for n in range(2)]

    chart = time_charts.stacked(
        starts, MINUTE_US, {"failed": [0, None]}, lambda value: f"{value:g}", {"failed": "failed"}
    )

    assert [column.is_gap for column in chart.columns] == [False, True]
    assert chart.columns[1].title.endswith(": no figures")
    assert [tick.label for tick in chart.y_ticks] == ["1", "2", "3"]


# --- the page ---------------------------------------------------------------------------------


def test_given_what_happened_then_each_period_shows_it_by_type_and_stage(world: World) -> None:
    jobs = world.site.submit("three", n=2)
    leases = world.site.claim_by_job()
    world.site.pass_(leases[jobs[0]])
    world.site.fail(leases[jobs[1]])
    world.store.throughput_history.record(now_us=now_us() + MINUTE_US)

    for span, depth in (
        ("hour", "counted each minute"),
        ("day", "average of each"),
        ("week", "average of each"),
    ):
        text = get(world.client("viewer"), f"/activity?span={span}")
        assert f"Jobs, {depth}" in text
        assert "no figures</li>" in text
        assert "Pending on average</th>" in text
        assert "passed 1, failed 1" in text
        assert re.search(r'data-label="Attempts" class="right"><span class="figure">2</span>', text)
        assert '<td data-label="Failed" class="right"><span class="figure">1</span></td>' in text
    assert "Nothing happened in this period" in get(world.client("viewer"), "/activity?queue=slow")


def test_given_a_present_minute_then_the_chart_ends_before_it_and_a_recorded_one_is_its_last(
    world: World,
) -> None:
    minute = now_us() // MINUTE_US
    world.store.throughput_history.record(now_us=(minute - 2) * MINUTE_US)  # the minute three before this one
    control = Control(store=world.store, clock=lambda: minute * MINUTE_US, wake_nodes=lambda: None, by="ann")

    ((_, _, chart), *_) = activity_page.read(control, SPANS["hour"], "", "", None).charts

    columns = chart.columns
    assert len(columns) == 60
    assert [column.is_gap for column in columns[-4:]] == [True, False, True, True]
    assert chart.has_gap
    world.store.throughput_history.record(now_us=minute * MINUTE_US)
    for _, _, chart in activity_page.read(control, SPANS["hour"], "", "", None).charts:
        assert [column.is_gap for column in chart.columns[-3:]] == [False, True, False]


def test_given_limits_then_others_queues_are_not_shown_and_by_collection_nothing_is(world: World) -> None:
    jobs = [world.submit("three", queue=queue) for queue in ("slow", "default")]
    began_us, leases = now_us(), world.site.claim_by_job()
    for job, seconds in zip(jobs, (5, 40), strict=True):
        ended_us = began_us + seconds * 1_000_000
        world.site.record(leases[job], Outcome.ERROR, started_us=began_us, ended_us=ended_us, retryable=False)
    world.submit("three", queue="slow")
    world.rights["narrow"] = Rights(role=Role.VIEWER, within=AccessScope(queues=("slow",)))
    world.store.throughput_history.record(now_us=now_us() + MINUTE_US)

    text = get(world.client("narrow"), "/activity")

    assert '<option value="slow">' in text
    assert '<option value="default">' not in text
    assert "pending 1, running 0" in text
    assert "ran 5.0 s" in text
    assert "ran 40 s" not in text
    assert "Not measured by collection" in get(world.client("limited"), "/activity")


def test_given_attempts_then_the_jobs_page_shows_when_they_waited_and_ran(world: World) -> None:
    job = world.submit("three", {"name": "<b>x</b>"})
    lease = world.site.claim_by_job()[job]
    began = now_us() + 2_000_000
    world.site.record(lease, Outcome.ERROR, started_us=began, ended_us=began + 3_000_000, retryable=False)

    text = get(world.client("viewer"), f"/jobs/{job}")

    assert re.search(r"first, attempt 1: waited [12]\.\d s", text)
    assert "ran 3.0 s, error" in text
    assert 'class="f-failed" width="10" height="10" rx="2"/></svg>failed</li>' in text
    assert "so far" not in text  # it has settled
    assert 'class="subject break">&lt;b&gt;x&lt;/b&gt;</p>' in text
    assert "Timeline" not in get(world.client("viewer"), f"/jobs/{world.submit('one')}")


def test_given_a_job_that_waits_behind_its_last_attempt_then_that_time_is_drawn_at_the_stage_to_come(
    world: World,
) -> None:
    top = world.submit("batch")
    lease = world.site.run(top)
    world.site.spawn(lease, "one")
    world.site.pass_(lease)

    attempts = world.store.attempts(top)
    drawn = timelines.of_job(
        world.store.job(top), attempts, (attempts[-1].ended_us or 0) + 60_000_000, most=9
    )

    assert drawn is not None
    assert [row.label for row in drawn.rows] == ["expand", "report"]
    assert [(segment.kind, segment.title) for segment in drawn.rows[1].segments] == [
        ("waiting", "report: has waited 1 min so far")
    ]


def test_given_more_attempts_than_are_drawn_then_they_keep_their_numbers_and_the_time_they_waited(
    world: World,
) -> None:
    job = world.submit("one")
    world.site.fail(world.site.claim_by_job()[job], started_us=now_us(), ended_us=now_us())
    (attempt,) = world.store.attempts(job)
    second_us = 1_000_000
    attempts = [
        replace(attempt, fence=n, started_us=at_us, ended_us=at_us + 4 * second_us)
        for n in range(1, 6)
        for at_us in [now_us() + n * 10 * second_us]
    ]

    drawn = timelines.of_job(world.store.job(job), attempts, now_us(), most=2)

    assert drawn is not None
    waited, ran, *_ = [segment.title for segment in drawn.rows[0].segments]
    assert waited == "work, attempt 4: waited 6.0 s"
    assert ran.startswith("work, attempt 4 on ")
    assert drawn.from_us == attempts[2].ended_us
    assert list(drawn.legend) == ["waiting", "failed"]
    assert "a retry" in drawn.legend["waiting"]  # by which a failed job goes on, whenever that is
    attempts[-1] = replace(attempts[-1], outcome="lost")
    lost = timelines.of_job(world.store.job(job), attempts, now_us(), most=2)
    assert lost is not None
    assert "orphaned" in lost.legend
