"""The documentation as a whole: its links lead somewhere, and the source files and commands that it names exist."""

import json
import re
import tomllib
from dataclasses import fields
from pathlib import Path

from typer.main import get_group

from own_commands import own_commands
from spinney.apps.ingest.cli import app as ingest
from spinney.apps.ingest.merritt.cli import app as merritt
from spinney.apps.monitor.cli import app as monitor
from spinney.apps.receivers.cli import app as receivers
from spinney.bridges.disbatch.cli import app as disbatch
from spinney.features.external.api import OutputRequest
from spinney.model.external import ClaimedWork, WorkItem
from spinney.server import api

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def anchors(page: Path) -> set[str]:
    """The fragments by which the headings of a page can be linked, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)", page.read_text(), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_lead_somewhere() -> None:
    broken = []
    for page in PAGES:
        for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
            if re.match(r"[a-z]+:", link):
                continue
            name, _, fragment = link.partition("#")
            target = page.parent / name if name else page
            if not target.exists() or (fragment and fragment not in anchors(target)):
                broken.append((page, link))

    assert broken == []


def test_source_files_that_it_names_exist() -> None:
    roots = [ROOT, ROOT / "src" / "spinney", ROOT / "src" / "spinney" / "apps" / "ingest"]
    named = {
        (page, name)
        for page in PAGES
        for name in re.findall(
            r"(?<![\w/.:-])((?:\w+/)+\w+\.py)\b", re.sub(r"^    .*", "", page.read_text(), flags=re.M)
        )
    }

    assert [each for each in sorted(named) if not any((root / each[1]).exists() for root in roots)] == []


def test_the_concepts_are_short() -> None:
    assert len((ROOT / "docs" / "concepts.md").read_text().split()) <= 2000


COMMANDS = {
    **own_commands(),
    "ingest": get_group(ingest),
    "monitor": get_group(monitor),
    "receivers": get_group(receivers),
    "disbatch": get_group(disbatch),
    "merritt": get_group(merritt),
}
COMMAND = re.compile(r"(?:^(?:    |\$ )?|`)spinney ((?:--server \S+ )?[a-z](?:[^`\n#;|&]|\\\n)*)", flags=re.M)


def test_commands_and_options_that_it_names_exist() -> None:
    missing = []
    named = [(page, text) for page in PAGES for text in COMMAND.findall(page.read_text())]
    for page, text in named:
        name, *words = re.sub(r"^--server \S+ ", "", text.replace("\\\n", "")).split()
        below = getattr(COMMANDS.get(name), "commands", {})
        commands = [below[words[0]]] if words and words[0] in below else [COMMANDS.get(name), *below.values()]
        offered = {
            option
            for each in commands
            if each is not None
            for parameter in each.params
            for option in (*parameter.opts, *parameter.secondary_opts)
        }
        options = {match[0] for word in words if (match := re.match(r"--[a-z][a-z-]*", word))}
        if name not in COMMANDS or not options <= offered:
            missing.append((page, text))

    assert missing == []


def test_the_readme_names_every_extra() -> None:
    text = (ROOT / "README.md").read_text().partition("The extras are")[2].partition("To look around")[0]
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]

    assert sorted(re.findall(r"`(\w+)`", text)) == sorted(extras)


def test_the_answer_to_a_claim_of_an_external_worker_has_all_its_fields() -> None:
    answer = json.loads(
        (ROOT / "docs" / "external.md").read_text().partition("A claim is answered")[2].split("\n\n")[1]
    )

    assert answer.keys() == {field.name for field in fields(ClaimedWork)}
    assert answer["work"][0].keys() == {field.name for field in fields(WorkItem)}


def test_the_requests_of_an_attempt_of_an_external_worker_are_as_its_page_writes_them() -> None:
    text = (ROOT / "docs" / "external.md").read_text()
    attempt = "/external/{worker}/attempts/{job}/{fence}/"
    requests = {(route.route.method, route.route.path): route for route in api.COMMANDS["external"]}
    rows = re.findall(r"^\| `(POST|PUT) (\w+)` `(\{.*?\})` \|", text, re.MULTILINE)

    for method, name, body in rows:
        if name == "output":
            OutputRequest.model_validate_json(body)
        else:
            fields_ = json.loads(body) | {"worker": "1-1", "job": 1, "fence": 1}
            requests[method, f"{attempt}{name}"].model_validate(fields_)
    assert {(method, f"{attempt}{name}") for method, name, _ in rows if name != "output"} == {
        place for place in requests if place[1].startswith(attempt)
    }
