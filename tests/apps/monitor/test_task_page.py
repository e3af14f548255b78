"""The examples of the page for those who write tasks, run by a real node."""

import re
from pathlib import Path

import pytest

from .monitor import Monitor, service

PAGE = Path(__file__).parents[3] / "docs" / "monitor" / "tasks.md"
EXAMPLE = re.compile(r"^`(\d\d_\w+\.\w+)`.*?^```text\n(.*?)^```$", flags=re.M | re.S)


@pytest.mark.parametrize("monitor", ["sqlite"], indirect=True)
def test_the_examples_run_as_they_stand(monitor: Monitor) -> None:
    examples = dict(EXAMPLE.findall(PAGE.read_text()))
    assert len(examples) == 3
    for name, text in examples.items():
        (monitor.place / "tasks" / name).write_text(text)
    monitor.import_(
        [
            service(1, uri="https://localhost/wms"),
            service(2, uri="http://localhost/", type="HTTP"),
            service(3, uri="http://nowhere.invalid/"),
        ]
    )
    monitor.start_node()
    sequence = monitor.check("--all")
    monitor.wait(lambda: monitor.is_settled(sequence))

    assert monitor.status(1) == {
        "resolves": ("ok", "localhost resolves"),
        "kind": ("ok", "WMS 1.3.0"),
        "secure": ("ok", "by HTTPS"),
    }
    assert monitor.status(2) == {
        "resolves": ("ok", "localhost resolves"),
        "secure": ("warning", "the service is reached without encryption"),
    }
    assert monitor.status(3) == {"resolves": ("error", "nowhere.invalid does not resolve")}
