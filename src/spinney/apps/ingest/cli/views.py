"""``status``, ``batches``, ``objects``, ``object``, ``find``, ``profiles``: show and list."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from spinney.apps.ingest.cli import arguments
from spinney.apps.ingest.cli.arguments import BatchArgument, ProfileOption, StageOption
from spinney.apps.ingest.cli.session import open_session
from spinney.apps.ingest.deposits.states import BatchState
from spinney.apps.ingest.verbs.archive import Find, Profiles
from spinney.apps.ingest.verbs.batches import LIMIT_MAX, Batches, Object, Objects, Status
from spinney.command_line import Exit, JsonOption, StoreOption, completion, display
from spinney.jobs import JOB_ID_MAX, State

LimitOption = Annotated[int, typer.Option("--limit", min=1, max=LIMIT_MAX, help="At most so many rows.")]
AfterOption = Annotated[
    int, typer.Option("--after", metavar="JOB", min=0, max=JOB_ID_MAX, help="Start after this job.")
]


def add_to(app: typer.Typer) -> None:
    app.command()(status)
    app.command("batches")(list_batches)
    app.command("objects")(list_objects)
    app.command("object")(show_object)
    app.command()(find)
    app.command("profiles")(list_profiles)


def status(which: BatchArgument, json: JsonOption = False, store: StoreOption = None) -> None:
    """Show the state of a batch, and how many of its objects are in each state."""
    with open_session(store) as service:
        facts = service.do(Status(batch=which))
    under = facts.pop("under")
    if json:
        display.print_json(facts)
        return
    del facts["holds"]
    facts["objects"] = _counted(facts["objects"])
    _print_facts(facts | {name: display.format_time(facts[name]) for name in ("accepted_us", "settled_us")})
    for hold in under:
        display.console().print(f"{'under':<12} {display.safe(hold)}")


def list_batches(
    profile: ProfileOption = None,
    state: Annotated[
        BatchState | None,
        typer.Option(
            help="Only batches in this state.", show_default=False, autocompletion=arguments.batch_states
        ),
    ] = None,
    submitter: Annotated[
        str | None,
        typer.Option(
            help="Only batches of this submitter.", show_default=False, autocompletion=completion.submitters
        ),
    ] = None,
    collection: Annotated[
        str | None,
        typer.Option(
            help="Only batches of this collection.", show_default=False, autocompletion=completion.collections
        ),
    ] = None,
    after: AfterOption = 0,
    limit: LimitOption = 50,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """List batches, the newest first."""
    query = Batches(
        profile=profile, state=state, submitter=submitter, collection=collection, after=after, limit=limit
    )
    with open_session(store) as service:
        items = service.do(query)["items"]
    if json:
        display.print_json_lines(items)
        return
    display.print_table(
        (
            "JOB",
            "BATCH",
            "STATE",
            "OBJECTS",
            "WARNINGS",
            "PROFILE",
            "SUBMITTER",
            "PAYLOAD",
            "ACCEPTED",
            "MESSAGE",
        ),
        (
            (
                b["job"],
                b["batch"],
                b["state"],
                _counted(b["objects"]),
                b["warnings"] or "",
                b["profile"],
                b["submitter"],
                b["payload"],
                display.format_time(b["accepted_us"]),
                b["message"],
            )
            for b in items
        ),
    )


def list_objects(
    which: BatchArgument,
    state: Annotated[
        list[State] | None,
        typer.Option(
            help="Only objects in this state; may be repeated.",
            show_default=False,
            autocompletion=completion.states,
        ),
    ] = None,
    stage: StageOption = None,
    message: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help="Only objects whose message contains this text.", show_default=False
        ),
    ] = None,
    after: AfterOption = 0,
    limit: LimitOption = 50,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """List the objects of a batch, in their order; with --json all data of each."""
    query = Objects(
        batch=which, state=state or [], stage=stage, message=message, whole=json, after=after, limit=limit
    )
    with open_session(store) as service:
        items = service.do(query)["items"]
    if json:
        display.print_json_lines(items)
        return
    display.print_table(
        ("JOB", "OBJECT", "STATE", "STAGE", "PASSED", "NAME", "MESSAGE"),
        (tuple(item.values()) for item in items),
    )


def show_object(
    which: Annotated[
        str, typer.Argument(metavar="OBJECT", help="The object: jid-…, or the number of its job.")
    ],
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Show all data of an object."""
    with open_session(store) as service:
        facts = service.do(Object(object=which))["object"]
    if json:
        display.print_json(facts)
    else:
        _print_facts(facts)


def find(
    ark: Annotated[str | None, typer.Option(help="The object with this ARK.", show_default=False)] = None,
    local_id: Annotated[
        str | None, typer.Option(help="Objects with this local id.", show_default=False)
    ] = None,
    file_name: Annotated[
        str | None,
        typer.Option(help="Files with this name, or whose path ends so.", show_default=False),
    ] = None,
    digest: Annotated[
        str | None,
        typer.Option(metavar="[ALGORITHM:]VALUE", help="Files with this digest.", show_default=False),
    ] = None,
    collection: Annotated[
        str | None, typer.Option(help="Only objects of this collection.", show_default=False)
    ] = None,
    after: Annotated[
        str | None,
        typer.Option(metavar="PLACE", help="Start after the item with this 'place'.", show_default=False),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="At most so many rows.")] = 50,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Find stored objects, or their files, in the inventory."""
    query = Find(
        ark=ark,
        local_id=local_id,
        file_name=file_name,
        digest=digest,
        collection=collection,
        limit=limit,
        after=after,
    )
    with open_session(store) as service:
        items = service.do(query)["items"]
    if json:
        display.print_json_lines(items)
    elif file_name is None and digest is None:
        display.print_table(
            ("ARK", "COLLECTION", "VERSION", "FILES", "BYTES", "LOCAL IDS", "TITLE"), map(_object_row, items)
        )
    else:
        display.print_table(("ARK", "COLLECTION", "VERSIONS", "BYTES", "FILE"), map(_file_row, items))


def list_profiles(json: JsonOption = False, store: StoreOption = None) -> None:
    """List the profiles; exit code 1 if one of them cannot be read."""
    with open_session(store) as service:
        items = service.do(Profiles())["items"]
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


def _counted(objects: Mapping[str, int]) -> str:
    return ", ".join(f"{n:,} {state}" for state, n in objects.items())


# --- rows and tables --------------------------------------------------------------------------


def _object_row(item: Mapping[str, Any]) -> tuple[Any, ...]:
    head = item["head"]
    sizes = (head["version"], f"{head['files']:,}", f"{head['size_bytes']:,}")
    return (item["ark"], item["collection"], *sizes, ", ".join(item["local_ids"]), head["what"])


def _file_row(item: Mapping[str, Any]) -> tuple[Any, ...]:
    found_file = item["file"]
    first, last = found_file["first_version"], found_file["last_version"]
    versions = str(first) if first == last else f"{first}-{last}"
    return (
        item["ark"],
        item["collection"],
        versions,
        f"{found_file['file']['size_bytes']:,}",
        found_file["file"]["path"],
    )


def _profile_row(profile: Mapping[str, Any]) -> tuple[Any, ...]:
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
    out = display.console()
    for name, value in facts.items():
        if value not in (None, "", (), []):
            text = ", ".join(value) if isinstance(value, list) else str(value)
            out.print(
                f"{name.removesuffix('_us').replace('_', ' '):<14} {display.safe(text)}", soft_wrap=True
            )
