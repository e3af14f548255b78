"""Products and summaries of a tree, and the names of data that jobs write."""

from pathlib import Path
from typing import Annotated, Any

import pytest

from spinney import Job, Secret, Spinney
from spinney.define.params.redaction import REDACTED
from spinney.model.errors import BadParameters, UsageError
from spinney.model.values.products import (
    Product,
    Summary,
    product_entry,
    products_of,
    summaries_of,
    without_entries,
)
from spinney.testing import StageHarness

app = Spinney()


@app.job
def plot(job: Job, target: str, title: str = "A plot", name: str = "plots/a.txt") -> list[str]:
    path = job.folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("x")
    job.products.add(target, title)
    job.summary(f"made {name}")
    return [product.title for product in job.products]


def test_files_and_addresses_are_collected_at_the_root() -> None:
    harness = StageHarness(parent_data={})

    harness.run(plot, target="plots/a.txt", title="First")
    harness.run(plot, target="plots/../plots/a.txt", title="Again")
    titles = harness.run(plot, target="https://example.org/x", title="Elsewhere").value

    assert titles == ["Again", "Elsewhere"]
    assert products_of(harness.root_data) == [
        Product(3, "Again", "plots/a.txt", None),
        Product(3, "Elsewhere", None, "https://example.org/x"),
    ]
    assert summaries_of(harness.root_data) == [Summary(3, "made plots/a.txt")]
    assert without_entries(harness.root_data) == {}
    assert harness.data == {}
    assert all(name.endswith("_") for name in harness.root_data)


def test_the_secrets_of_a_job_are_redacted_in_what_it_adds_at_the_root() -> None:
    local = Spinney()

    @local.job
    def log_in(job: Job, title: Annotated[str, Secret()]) -> None:
        for name in ("a.txt", f"{title}.txt"):
            (job.folder / name).write_text("x")
        job.products.add("a.txt", f"The file of {title}")
        with pytest.raises(
            BadParameters, match=f"the name of the file '{REDACTED}.txt' holds a secret; rename it"
        ):
            job.products.add(f"{title}.txt", "Its link would lead nowhere")
        job.products.add(f"https://example.org/?token={title}", "The page")
        job.summary(f"logged in with {title}")

    harness = StageHarness(parent_data={})

    harness.run(log_in, title="open sesame")

    assert products_of(harness.root_data) == [
        Product(3, f"The file of {REDACTED}", "a.txt", None),
        Product(3, "The page", None, f"https://example.org/?token={REDACTED}"),
    ]
    assert summaries_of(harness.root_data) == [Summary(3, f"logged in with {REDACTED}")]


@pytest.mark.parametrize(
    "target", ["missing.txt", "../outside.txt", "/etc/passwd", "plots", "javascript:alert(1)", ""]
)
def test_what_is_no_file_in_the_folder_is_refused(target: str, tmp_path: Path) -> None:
    harness = StageHarness(folder=tmp_path)
    (harness.job_folder.parent / "outside.txt").write_text("x")
    with pytest.raises(BadParameters, match="no file in the job's folder"):
        harness.run(plot, target=target)


@pytest.mark.parametrize("title", ["", "  ", "x" * 501])
def test_a_title_is_neither_empty_nor_long(title: str) -> None:
    with pytest.raises(BadParameters, match="1 to 500"):
        StageHarness().run(plot, target="plots/a.txt", title=title)


@pytest.mark.parametrize(
    "value",
    [{"title": "x", "url": "javascript:alert(1)"}, {"title": 1, "path": "x"}, {"title": "x"}, "x", None],
)
def test_entries_that_are_no_products_are_left_out(value: Any) -> None:
    assert products_of({product_entry(1, "x"): value, "product:x_": value, "other": value}) == []


def test_generated_names_end_in_an_underscore() -> None:
    @app.job(names="generated_")
    def count(job: Job, name: str) -> None:
        job.data[name] = 1
        job.root.data.append("log_", name)
        job.summary("counted")

    harness = StageHarness()
    harness.run(count, name="rows_")
    assert (harness.data["rows_"], harness.data["log_"]) == (1, ["rows_"])
    with pytest.raises(BadParameters, match="write rows_"):
        harness.run(count, name="rows")
    with pytest.raises(UsageError, match="names must be 'any' or 'generated_'"):
        app.job(name="wrong", names="generated")(lambda job: None)


def test_a_title_that_is_too_long_shows_no_part_of_a_secret() -> None:
    local = Spinney()

    @local.job
    def log_in(job: Job, title: Annotated[str, Secret()]) -> None:
        job.products.add("a.txt", f"The file of {title}")

    with pytest.raises(BadParameters, match=f"not 'The file of {REDACTED}'$"):
        StageHarness(parent_data={}).run(log_in, title="sesame" * 100)
