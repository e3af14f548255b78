"""Boxes, tables and JSON to the byte, as the old server wrote them."""

import pytest

from spinney.apps.monitor.line_protocol import layout
from spinney.apps.monitor.line_protocol.command_line import CommandLine, InvalidLine, parse
from spinney.apps.monitor.line_protocol.selections import integer, named

BOX = """\
+--------------------------------------------------------------------------------+
|[120] Noop command acknoledged                                                  |
+--------------------------------------------------------------------------------+

"""
ENTITIES = """\
+-----------------------------------------------------------+
|                   [108] List of Entities                  |
+-----+-------------------------------------------+---------+
| Eid | Description                               | Records |
+-----+-------------------------------------------+---------+
| 1   | Direção de Cartografia e Ordenamento      | 8       |
| 4   | Entidade sem serviços                     | 0       |
+-----+-------------------------------------------+---------+

"""
NO_ENTITIES = """\
+-----------------------------+
|    [108] List of Entities   |
+-----+-------------+---------+
| Eid | Description | Records |
+-----+-------------+---------+
+-----+-------------+---------+

"""
SEQUENCES = """\
+-------------------------------------------------------------------------------------+
|                              [106] Job Sequences Status                             |
+--------+----------------------+--------------+----------------+------------+--------+
| Seq ID | Description          | Running Jobs | Completed Jobs | Total Jobs | Status |
+--------+----------------------+--------------+----------------+------------+--------+
| seq8   | Rede de ensaio lenta | 4            | 0              | 6          | queued |
| seq000 | Rede viária          | 0            | 0              | 1          | queued |
+--------+----------------------+--------------+----------------+------------+--------+
| 4 running 0 idle threads                                                            |
+-------------------------------------------------------------------------------------+

"""
NO_SEQUENCES = """\
+--------------------------------------+
|      [106] Job Sequences Status      |
| 0 running 0 idle threads             |
+--------------------------------------+

"""
SERVICE = """\
+-----------------------------------------------------------------------------------------------+
|                              [116] Carta de Ocupação do Solo 2018                             |
+-------------+---------------------------------------------------------------------------------+
| gid         | 1                                                                               |
| URL         | http://127.0.0.1:18080/ok/cos?service=WMS&version=1.3.0&request=GetCapabilities |
+-------------+---------------------------------------------------------------------------------+

"""
GREEN, RED = "\x1b[48;5;42m\x1b[38;5;0m", "\x1b[38;5;20m\x1b[48;5;9m"
TASKS = f"""\
+--------------------------------------------------------------------------------------------------+
|                                          [118] Toponímia                                         |
+------------------------------+------------+--------------------------------+---------------------+
| Task                         | Status     | Info                           | Timestamp           |
+------------------------------+------------+--------------------------------+---------------------+
| Record Data Congruence Check | {GREEN}    ok    \x1b[m | Service Data congruence passed | 2025-03-10 06:00:01 |
| Check URL Status Codes       | {RED}  error   \x1b[m | Invalid HTTP status code 404   | 2025-03-10 06:00:02 |
+------------------------------+------------+--------------------------------+---------------------+

"""
CAPTION = ("Seq ID", "Description", "Running Jobs", "Completed Jobs", "Total Jobs", "Status")
URL = "http://127.0.0.1:18080/ok/cos?service=WMS&version=1.3.0&request=GetCapabilities"


def test_a_box() -> None:
    assert layout.box("[120] Noop command acknoledged") == BOX


def test_a_box_is_as_wide_as_its_text_and_has_a_row_a_line() -> None:
    assert layout.box("a\nb").splitlines()[1:3] == [f"|a{' ' * 79}|", f"|b{' ' * 79}|"]
    assert layout.box("x" * 90).splitlines()[0] == f"+{'-' * 90}+"


def test_tables() -> None:
    eid = ("Eid", "Description", "Records")
    rows = [(1, "Direção de Cartografia e Ordenamento     ", 8), (4, "Entidade sem serviços", 0)]
    assert layout.table("[108] List of Entities", eid, rows) == ENTITIES
    assert layout.table("[108] List of Entities", eid, []) == NO_ENTITIES
    sequences = [
        ("seq8", "Rede de ensaio lenta", 4, 0, 6, "queued"),
        ("seq000", "Rede viária", 0, 0, 1, "queued"),
    ]
    title = "[106] Job Sequences Status"
    assert layout.table(title, CAPTION, sequences, "4 running 0 idle threads") == SEQUENCES
    assert layout.table(title, None, [], "0 running 0 idle threads") == NO_SEQUENCES
    assert (
        layout.table("[116] Carta de Ocupação do Solo 2018", None, [("gid        ", 1), ("URL", URL)])
        == SERVICE
    )


def test_a_table_with_colours() -> None:
    rows = [
        (
            "Record Data Congruence Check",
            layout.coloured("ok"),
            "Service Data congruence passed",
            "2025-03-10 06:00:01",
        ),
        (
            "Check URL Status Codes",
            layout.coloured("error"),
            "Invalid HTTP status code 404",
            "2025-03-10 06:00:02",
        ),
    ]
    assert layout.table("[118] Toponímia", ("Task", "Status", "Info", "Timestamp"), rows) == TASKS


def test_a_cell_of_several_lines_takes_several_rows() -> None:
    made = layout.table("t", ("A", "B"), [("x\nyy", "z")])
    assert made.splitlines()[5:7] == ["| x  | z |", "| yy |   |"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [("x" * 80, "x" * 80), ("x" * 90, "x" * 73 + "......"), (f"{'word ' * 17}end", None)],
)
def test_long_descriptions_are_cut(text: str, shown: str | None) -> None:
    made = layout.cut(text, 80)
    assert made == shown if shown is not None else made.endswith("......")
    assert layout.cut_at_work("x" * 59) == "x" * 59
    assert layout.cut_at_work("x" * 60) == "x" * 57 + "..."


def test_json() -> None:
    assert (
        layout.json_text({"code": "108", "entities": []})
        == '{\n\t"code": "108",\n\t"entities": [\n\n\t]\n}\n\n'
    )
    assert layout.json_text({"a": [{"b": 1}], "c": {"d": "x/\n\té\x1b"}}) == (
        '{\n\t"a": [\n\t\t{\n\t\t\t"b": 1\n\t\t}\n\t],\n\t"c": {\n\t\t"d": "x/\\n\\té\\u001B"\n\t}\n}\n\n'
    )


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (6, "6 secs"),
        (66, "1 mins, 6 secs"),
        (7205, "2 hours, 0 mins, 5 secs"),
        (86400, "1 days, 0 hours, 0 mins, 0 secs"),
    ],
)
def test_durations(seconds: float, words: str) -> None:
    assert layout.elapsed(seconds) == words


@pytest.mark.parametrize(
    ("line", "word", "arguments"),
    [
        ("  NOOP x  {y z}\0", "NOOP", ["x", "y z"]),
        ("NOOP;x", "NOOP", []),
        ("REGTASKS-x y", "REGTASKS", []),
        ("noop x", "noop", []),
        ("NOOP1 x", "NOOP1", []),
        ("1", "1", []),
    ],
)
def test_lines(line: str, word: str, arguments: list[str]) -> None:
    assert parse(line) == CommandLine(word, arguments)


@pytest.mark.parametrize("line", ["!!", " ", "é"])
def test_lines_without_a_command(line: str) -> None:
    with pytest.raises(InvalidLine):
        parse(line)


def test_integers_and_names_of_services() -> None:
    texts = ["12", "+3", " 4 ", "0x1", "0b11", "010", "08", "4294967296", "1.0", "abc", ""]
    assert [integer(text) for text in texts] == [12, 3, 4, 1, 3, 10, None, None, None, None, 0]
    made = named(["1", "0", "gid=3", "xeid=5y", "Solo%", "GID=1", "eid=0"])
    assert (made.gids, made.eids, made.patterns) == ([1, 3], [5], ["Solo%", "GID=1"])
