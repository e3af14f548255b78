"""The library as others use it: alone, and as its page says."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient

from spinney.bridges.merritt import JobState, MerrittQueue

PAGE = Path(__file__).parents[3] / "docs" / "merritt.md"


def test_it_loads_nothing_else_of_spinney() -> None:
    script = (
        "import sys, spinney.bridges.merritt; print(*(m for m in sys.modules if m.startswith('spinney')))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    others = [name for name in run.stdout.split() if not name.startswith("spinney.bridges.merritt")]
    assert set(others) <= {"spinney", "spinney.bridges", "spinney.public_names", "spinney.version"}


def test_the_example_of_the_page(client: KazooClient, hosts: str) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    names: dict[str, Any] = {}

    exec(example.replace("127.0.0.1:2181", hosts), names)

    assert names["job"].state is JobState.ESTIMATING
    assert MerrittQueue(client).check() == []
    names["client"].stop()
    names["client"].close()
