import pytest

from spinney.web.pages.charts import HEIGHT, WIDTH, bar, spark


def test_given_moments_then_the_line_ends_at_the_right_and_its_peak_is_near_the_top() -> None:
    chart = spark([(0, 0.0), (50, 8.0), (100, 4.0)], from_us=0, until_us=100)

    assert chart is not None
    points = [tuple(map(float, point.split(","))) for point in chart.line.split()]
    assert [x for x, _ in points] == [0, WIDTH / 2, WIDTH]
    assert points[0][1] == HEIGHT - 1
    assert points[1][1] == 2
    assert chart.last == 4.0


def test_given_too_little_or_nothing_but_zeros_then_nothing_breaks() -> None:
    assert spark([(50, 1.0)], from_us=0, until_us=100) is None
    assert spark([(1, 1.0), (2, 1.0)], from_us=50, until_us=100) is None
    flat = spark([(0, 0.0), (100, 0.0)], from_us=0, until_us=100)
    assert flat is not None
    assert flat.line == f"0.0,{HEIGHT - 1:.1f} {WIDTH:.1f},{HEIGHT - 1:.1f}"


def test_given_counts_then_the_parts_fill_the_bar_and_the_smallest_can_be_seen() -> None:
    parts = bar({"completed": 999_999, "failed": 1, "held": 0}, ("completed", "held", "failed"))

    assert [p.name for p in parts] == ["completed", "failed"]
    assert parts[1].width >= 0.9
    assert sum(p.width for p in parts) == pytest.approx(100, abs=0.1)
    assert bar({}, ("completed",)) == []
