"""Whoever copies and pastes the tutorial sees what it shows: all of it in its order, with a node at work."""

import platform
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

import pytest

from cli.shell import Shell
from long_tests import LONG
from snippets import require_lawful, require_readable, run_console, snippets, texts
from spinney.model.fleet import Load
from spinney.model.jobs import NodeInfo
from spinney.terminal.connection import now_us, open_local_store
from waiting import until

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"
HOME = "/home/ann/garden"
"""The folder of the page's reader."""


@dataclass
class Reader:
    """Somebody who does what the page says, in a folder."""

    shell: Shell
    nodes: "list[subprocess.Popen[str]]" = field(default_factory=list)

    def start(self, words: list[str]) -> None:
        """Start the node ``oak``, which has the whole application from the beginning and so need not be replaced. A
        second one costs what a start costs: in the short form it is a row of the store."""
        require_lawful(words)
        if "--replace" in words:
            return
        if LONG or not self.nodes:
            self.nodes.append(self.shell.start(*words))
        else:
            self._join(words[words.index("--name") + 1], int(words[words.index("--slots") + 1]))

    def sees(self, nodes: int) -> bool:
        """Whether so many nodes are at work, with all that a list of them shows."""
        return sum(node["load"] is not None for node in self.shell.listed("nodes")) == nodes

    def _join(self, name: str, slots: int) -> None:
        info = NodeInfo(
            id=0,
            name=name,
            boot_id="",
            host=platform.node(),
            pid=1,
            slots=slots,
            state="active",
            beat=0,
            started_us=now_us(),
            seen_us=now_us(),
            version=version("spinney"),
            types=("count", "page", "album"),
            lease_s=600.0,
        )
        with open_local_store(f"sqlite:///{self.shell.folder}/spinney.db") as store:
            node = store.join(info, now_us=now_us())
            load = Load(one_minute=0.5, cpus=2, memory_bytes=2**31, memory_free_bytes=2**30)
            store.beat(node, load=load, now_us=now_us())


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    made = Reader(Shell(tmp_path))
    yield made
    for node in made.nodes:
        node.terminate()
        _, err = node.communicate(timeout=30)
        assert node.returncode == 0, err


def plain(printed: str, folder: Path) -> str:
    """Without what differs from run to run, and from machine to machine."""
    text = printed.replace(str(folder), HOME)
    text = re.sub(
        r'^  File "(?!.*/(?:jobs\.py|spinney/.*)").*\n(?:    .*\n)*', "", text, flags=re.M
    )  # frames of Python's own
    text = re.sub(r"^ +[~^]+\n", "", text, flags=re.M)
    text = re.sub(r"^(\d+) of (?!\1)\d+ settled.*\n", "", text, flags=re.M)  # what --wait tells on its way
    for pattern, word in (
        (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "TIME"),
        (r"\b\d+(\.\d+)? m?s\b", "LENGTH"),
        (r"^\d+ +(?=\w+(?: #\d)? +(?:ok|error) )", "FENCE "),
        (r"\b\d+\.\d+ of \d+, \d+\.\d+ GB free", "LOAD"),
        (r"^(folder token|version|works with) .*", r"\1"),
        (r"(?<= )\d+\.\d+\.\d+(?= )", "VERSION"),
        (rf"(?<= ){re.escape(platform.node())}(?= )", "HOST"),
        (r"(?<= )vm(?= )", "HOST"),
        (r" +", " "),
        (r" $", ""),
    ):
        text = re.sub(pattern, word, text, flags=re.M)
    return text.strip()


def test_it_goes_as_it_stands(reader: Reader, tmp_path: Path) -> None:
    # A reader adds the pieces one after the other, each time with another start of the node.
    (tmp_path / "jobs.py").write_text("\n\n".join(texts(PAGE, "python")))

    for snippet in snippets(PAGE):
        if snippet.language == "console":
            started = len(reader.nodes)
            run_console(
                snippet,
                tmp_path,
                reader.shell.call,
                plain=lambda text: plain(text, tmp_path),
                endless=reader.start,
            )
            if len(reader.nodes) > started:
                until(lambda: reader.sees(len(reader.nodes)))
        elif snippet.language == "toml":
            (tmp_path / "elsewhere").mkdir()
            require_readable(snippet, tmp_path / "elsewhere")
