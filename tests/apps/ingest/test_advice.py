"""What sentences of the service name is there: commands and their options, settings, keys of profiles."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_group

import spinney.apps.ingest
from spinney.apps.ingest.cli import app
from spinney.apps.ingest.config.profiles import Profile
from spinney.apps.ingest.config.settings import Settings, Table
from spinney.apps.ingest.manifests import json_form
from spinney.apps.ingest.merritt.cli import app as merritt
from spinney.terminal.command_index import COMMAND_MODULES

CODE = Path(spinney.apps.ingest.__file__).parent
COMMAND = re.compile(r"'(?:spinney )?(ingest|merritt) ([a-z]+)([^']*)'")
OF_ENGINE = re.compile(r"'spinney (?!(?:ingest|merritt) )([a-z]+)([^']*)'")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
DOTTED = re.compile(r"\b([a-z]+)\.([a-z_]+)\b(?![/(])")
SNAKE = re.compile(r"(?<![\w{.])[a-z]+(?:_[a-z]+)+\b")
SQL = re.compile(r"pragma |set local |; set local |select |delete |damaged_since_us ")
FOREIGN = {"--sparse", "pg_stat_activity", "oai_dc", "payload_url"}
"""Of tar, of PostgreSQL, of Dublin Core and of Merritt's queue."""
UNNAMED = re.compile(r"\b(the configuration|the limit raised|a setting)\b")
"""Words that leave people to guess which."""


def tables(of: type[Table] = Settings) -> dict[str, set[str]]:
    """The settings by the table that they stand in; '' is the top."""
    fields = {"": set(of.model_fields)}
    for name, field in of.model_fields.items():
        for one in (field.annotation, *getattr(field.annotation, "__args__", ())):
            if isinstance(one, type) and issubclass(one, Table):
                fields[name] = set(one.model_fields)
    return fields


def sentences() -> Iterator[tuple[str, str]]:
    """Where each text with a blank stands, and the text; what is filled in is '{}'. Comments of code are none."""
    for path in sorted(path for path in CODE.rglob("*.py") if not {"demo", "migrations"} & {*path.parts}):
        tree = ast.parse(path.read_text())
        no_text = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
        no_text |= {id(part) for n in ast.walk(tree) if isinstance(n, ast.JoinedStr) for part in n.values}
        for node in ast.walk(tree):
            text = "" if id(node) in no_text else _text(node)
            if " " in text and not SQL.match(text):
                yield f"{path.relative_to(CODE)}:{getattr(node, 'lineno', 0)}", text


def _text(node: ast.AST) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def options(command: Any) -> set[str]:
    return {option for p in command.params for option in p.opts}


def commands() -> dict[str, set[str]]:
    return {
        f"{group} {name}": options(one)
        for group, commands_ in (("ingest", app), ("merritt", merritt))
        for name, one in get_group(commands_).commands.items()
    }


def wrong(text: str, commands: dict[str, set[str]], settings: dict[str, set[str]]) -> Iterator[str]:
    """What a sentence names and nobody has."""
    for group, command, more in COMMAND.findall(text):
        name = f"{group} {command}"
        if name not in commands:
            yield f"the command {name}"
        yield from (f"{name} {one}" for one in OPTION.findall(more) if one not in commands.get(name, ()))
    for name, _ in OF_ENGINE.findall(text):
        if name not in COMMAND_MODULES:
            yield f"the command {name}"
    every = set().union(*commands.values()) | FOREIGN
    yield from (one for one in OPTION.findall(OF_ENGINE.sub("", text)) if one not in every)
    for table, key in DOTTED.findall(text):
        if table in settings and key not in settings[table]:
            yield f"{table}.{key}"
    words = set().union(*settings.values()) | set(Profile.model_fields) | FOREIGN
    words |= {*json_form.FILE_KEYS, *json_form.OBJECT_KEYS}
    yield from (one for one in SNAKE.findall(text) if one not in words)
    yield from UNNAMED.findall(text)


def test_all_that_a_sentence_names_is_there() -> None:
    words, settings = commands(), tables()

    mistakes = {place: list(wrong(text, words, settings)) for place, text in sentences()}

    assert {place: names for place, names in mistakes.items() if names} == {}
    assert len(mistakes) > 300


def test_what_is_not_there_is_found() -> None:
    """So that the test above is not empty."""
    words, settings = commands(), tables()
    assert settings["working"] >= {"limit", "unpacked_bytes"}
    for text, name in (
        ("run 'spinney ingest initiate'", "the command ingest initiate"),
        ("run 'spinney ingest init --again'", "ingest init --again"),
        ("run 'spinney shew 7'", "the command shew"),
        ("say so with --kinds", "--kinds"),
        ("raise working.unpack_bytes", "working.unpack_bytes"),
        ("add it to file_root", "file_root"),
        ("have the limit raised", "the limit raised"),
    ):
        assert name in list(wrong(text, words, settings)), text
    for text in (
        "run 'spinney ingest release --batch {}'",
        "raise working.ratio, or name file_roots",
        "pack it anew",
    ):
        assert list(wrong(text, words, settings)) == []
