"""``status``, ``batches``, ``objects``, ``object``, ``find``, ``profiles``, ``report``: show and list.

Each prints a table or lines for people, or with ``--json`` all data, one value a line for a list. Which
objects a caller sees is decided by the verbs.

A report that was sent is a file in the folder of the batch's job, and is fetched like any other file of a
job; one as of now is made by the verb and comes with its answer.
"""

import sys
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from spinney.apps.ingest.cli.commands import command
from spinney.apps.ingest.cli.session import open_session
from spinney.apps.ingest.verbs.archive import Find, Profiles
from spinney.apps.ingest.verbs.batches import Batches, Form, Object, Objects, Report, Status
from spinney.command_line import Exit, JsonOption, StoreOption, display, files_of, with_fields
from spinney.errors import UsageError

app = typer.Typer()


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
    items = answer["items"]
    if json:
        display.print_json_lines(items)
        return
    shown = ("job", "batch", "state", "objects", "warnings", "profile", "submitter", "payload")
    for item in items:
        item |= {"objects": _counted(item["objects"]), "warnings": item["warnings"] or ""}
    display.print_table(
        (*(name.upper() for name in shown), "ACCEPTED", "MESSAGE"),
        ((*(b[name] for name in shown), display.format_time(b["accepted_us"]), b["message"]) for b in items),
    )


@app.command()
@with_fields(Objects, without={"whole"})
def objects(fields: Mapping[str, Any], json: JsonOption = False, store: StoreOption = None) -> None:
    """List the objects of a batch, in their order; with --json all data of each."""
    with open_session(store) as session:
        items = session.do(Objects(whole=json, **fields))["items"]
    if json:
        display.print_json_lines(items)
        return
    display.print_table(
        ("JOB", "OBJECT", "STATE", "STAGE", "PASSED", "NAME", "MESSAGE"),
        (tuple(item.values()) for item in items),
    )


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
    items = answer["items"]
    if json:
        display.print_json_lines(items)
    elif query.file_name is None and query.digest is None:
        display.print_table(
            ("ARK", "COLLECTION", "VERSION", "FILES", "BYTES", "LOCAL IDS", "TITLE"), map(_object_row, items)
        )
    else:
        display.print_table(("ARK", "COLLECTION", "VERSIONS", "BYTES", "FILE"), map(_file_row, items))


@command(app, Profiles)
def show_profiles(query: Profiles, answer: Mapping[str, Any], *, json: JsonOption = False) -> None:
    """Print a table of the profiles; the problems of those that cannot be read go to stderr, and set the exit code."""
    items = answer["items"]
    problems = [item["problem"] for item in items if "problem" in item]
    if json:
        display.print_json_lines(items)
    else:
        display.print_table(
            ("PROFILE", "COLLECTION", "STORAGE", "MINTER", "PRIORITY", "REPORTS", "HOLD"),
            (_profile_row(item) for item in items if "problem" not in item),
        )
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
            with display.closed_pipe_ends_output():
                for piece in files_of(session.performer, answer["job"], store).content(answer["path"]):
                    sys.stdout.buffer.write(piece)
            return
    if json:
        display.print_json(answer["report"])
        return
    with display.closed_pipe_ends_output():
        sys.stdout.write(answer["report"])


def _counted(objects: Mapping[str, int]) -> str:
    """Return the numbers of objects by state in one line: ``2 completed, 1 failed``; empty for a batch
    without objects."""
    return ", ".join(f"{n:,} {state}" for state, n in objects.items())


# --- rows and tables --------------------------------------------------------------------------


def _object_row(item: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the row of an object.

    The description and the sizes are those of its newest version; local ids are those of the object.
    """
    head = item["head"]
    sizes = (head["version"], f"{head['files']:,}", f"{head['size_bytes']:,}")
    return (item["ark"], item["collection"], *sizes, ", ".join(item["local_ids"]), head["what"])


def _file_row(item: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the row of a file, with the first and the last version that have it."""
    match = item["file"]
    first, last, file = match["first_version"], match["last_version"], match["file"]
    versions = str(first) if first == last else f"{first}-{last}"
    return (item["ark"], item["collection"], versions, f"{file['size_bytes']:,}", file["path"])


def _profile_row(profile: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the row of a profile, with the recipients of its reports; a priority that is not set follows the
    size."""
    report = profile["report"]
    recipients = ", ".join(report["batch"])
    priority = "by size" if profile["priority"] is None else profile["priority"]
    return (
        profile["name"],
        ", ".join(profile["collections"]),
        profile["storage"],
        profile["minter"],
        priority,
        f"{report['kind']}: {recipients}" if recipients else report["kind"],
        profile["hold"],
    )


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
