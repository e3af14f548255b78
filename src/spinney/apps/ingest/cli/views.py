"""``status``, ``batches``, ``objects``, ``object``, ``find``, ``profiles``, ``report``: show and list.

Each prints a table or lines for people, or with ``--json`` all data, one value a line for a list. Which
objects a caller sees is decided by the verbs.

A report that was sent is a file in the folder of the batch's job, and is fetched like any other file of a
job; one as of now is made by the verb and comes with its answer.
"""

import sys
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Annotated, Any

import typer

from spinney.apps.ingest.cli.session import command, open_session
from spinney.apps.ingest.verbs.archive import Find, Profiles
from spinney.apps.ingest.verbs.batches import Batches, Form, Object, Objects, Report, Status
from spinney.command_line import Exit, JsonOption, StoreOption, display, files_of, with_fields
from spinney.errors import UsageError

app = typer.Typer()
Item = Mapping[str, Any]
Columns = Mapping[str, Callable[[Item], Any]]


@command(app, Status)
def show_status(query: Status, answer: dict[str, Any], *, json: JsonOption = False) -> None:
    """Print the facts of a batch, one on each line, and the holds that apply to it."""
    under = answer.pop("under")
    if json:
        display.print_json(answer)
        return
    del answer["holds"]
    answer["objects"] = _counted(answer["objects"])
    times = {name: display.format_time(answer[name]) for name in ("accepted_us", "settled_us")}
    _print_facts(answer | times)
    for hold in under:
        _print_facts({"under": hold})


@command(app, Batches)
def show_batches(query: Batches, answer: Mapping[str, Any], *, json: JsonOption = False) -> None:
    """Print a table, or with ``json`` one line for each batch."""
    display.print_list(answer["items"], _BATCHES, json=json)


@app.command()
@with_fields(Objects, without={"whole"})
def objects(fields: Mapping[str, Any], json: JsonOption = False, store: StoreOption = None) -> None:
    """List the objects of a batch, in their order; with --json all data of each."""
    with open_session(store) as session:
        items = session.do(Objects(whole=json, **fields))["items"]
    display.print_list(items, _OBJECTS, json=json)


@command(app, Object)
def show_object(query: Object, answer: Mapping[str, Any], *, json: JsonOption = False) -> None:
    """Print the elements that have a value, one on each line."""
    if json:
        display.print_json(answer["object"])
    else:
        _print_facts(answer["object"])


@command(app, Find)
def show_search(query: Find, answer: Mapping[str, Any], *, json: JsonOption = False) -> None:
    """Print a table of objects, or of files where the search was for files."""
    columns = _STORED_OBJECTS if query.file_name is None and query.digest is None else _STORED_FILES
    display.print_list(answer["items"], columns, json=json)


@command(app, Profiles)
def show_profiles(query: Profiles, answer: Mapping[str, Any], *, json: JsonOption = False) -> None:
    """Print a table of the profiles; the problems of those that cannot be read go to stderr, and set the exit code."""
    items = answer["items"]
    problems = [item["problem"] for item in items if "problem" in item]
    display.print_list([i for i in items if json or "problem" not in i], _PROFILES, json=json)
    if not json:
        for problem in problems:
            typer.echo(f"spinney: {display.safe(problem)}", err=True)
    if problems:
        raise typer.Exit(Exit.REFUSED)


@app.command()
@with_fields(Report, without={"form"})
def report(
    fields: Mapping[str, Any],
    html: Annotated[bool, typer.Option("--html", help="Print it as HTML.")] = False,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Print a report of a batch: the last one that was sent, or as it would be now."""
    if html and json:
        raise UsageError("--html and --json exclude each other; give only one of them")
    query = Report(form=Form.HTML if html else Form.JSON if json else Form.TEXT, **fields)
    with open_session(store) as session:
        answer = session.do(query)
        if not query.now:
            for piece in files_of(session.performer, answer["job"], store).content(answer["path"]):
                sys.stdout.buffer.write(piece)
            return
    if json:
        display.print_json(answer["report"])
        return
    sys.stdout.write(answer["report"])


def _counted(objects: Mapping[str, int]) -> str:
    """Return the numbers of objects by state in one line: ``2 completed, 1 failed``; empty for a batch
    without objects."""
    return ", ".join(f"{n:,} {state}" for state, n in objects.items())


# --- tables -----------------------------------------------------------------------------------


def _versions(item: Item) -> str:
    """Return the first and the last version that have a file."""
    first, last = item["file"]["first_version"], item["file"]["last_version"]
    return str(first) if first == last else f"{first}-{last}"


def _reports(profile: Item) -> str:
    """Return the kind and the recipients of a profile's reports."""
    kind, recipients = profile["report"]["kind"], ", ".join(profile["report"]["batch"])
    return f"{kind}: {recipients}" if recipients else kind


def _fields(*names: str) -> Columns:
    """Return columns that show fields as they are."""
    return {name.upper(): itemgetter(name) for name in names}


_BATCHES: Columns = {
    **_fields("job", "batch", "state"),
    "OBJECTS": lambda batch: _counted(batch["objects"]),
    "WARNINGS": lambda batch: batch["warnings"] or "",
    **_fields("profile", "submitter", "payload"),
    "ACCEPTED": lambda batch: display.format_time(batch["accepted_us"]),
    **_fields("message"),
}
_OBJECTS: Columns = {
    **_fields("job"),
    "OBJECT": itemgetter("jid"),
    **_fields("state", "stage", "passed", "name", "message"),
}
_STORED_OBJECTS: Columns = {
    **_fields("ark", "collection"),
    "VERSION": lambda item: item["head"]["version"],
    "FILES": lambda item: f"{item['head']['files']:,}",
    "BYTES": lambda item: f"{item['head']['size_bytes']:,}",
    "LOCAL IDS": lambda item: ", ".join(item["local_ids"]),
    "TITLE": lambda item: item["head"]["what"],
}
"""The description and the sizes are those of the newest version; local ids are those of the object."""
_STORED_FILES: Columns = {
    **_fields("ark", "collection"),
    "VERSIONS": _versions,
    "BYTES": lambda item: f"{item['file']['file']['size_bytes']:,}",
    "FILE": lambda item: item["file"]["file"]["path"],
}
_PROFILES: Columns = {
    "PROFILE": itemgetter("name"),
    "COLLECTION": lambda profile: ", ".join(profile["collections"]),
    **_fields("storage", "minter"),
    "PRIORITY": lambda profile: "by size" if profile["priority"] is None else profile["priority"],
    "REPORTS": _reports,
    **_fields("hold"),
}


def _print_facts(facts: Mapping[str, Any]) -> None:
    """Print named values, one a line; those that are empty are left out, and the unit of a time is left out
    of its name."""
    out = display.console()
    for name, value in facts.items():
        if value not in (None, "", (), []):
            text = ", ".join(value) if isinstance(value, list) else str(value)
            out.print(
                f"{name.removesuffix('_us').replace('_', ' '):<14} {display.safe(text)}", soft_wrap=True
            )
