"""The commands ``init`` and ``node``: create a store, and run a node.

``init`` may be repeated: it creates what is missing, and upgrades an older store as far as nodes of the
previous version can work beside it; ``--finish`` does the rest. Tables come first and the token of the folder
root last, so that an ``init`` that is killed is completed by the next one. ``node`` reads the settings, and
the process then becomes the guard of the node (``spinney.node.run``).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spinney.config import FILE, Settings
from spinney.model.errors import StoreMissing, StoreUnusable, UsageError
from spinney.model.jobs import Filter
from spinney.model.values.store_urls import without_password
from spinney.terminal import completion
from spinney.terminal.connection import open_local_store, resolve_settings
from spinney.terminal.options.arguments import JsonOption, SlotsOption, StoreOption, length, option
from spinney.terminal.options.option_groups import given_options, with_option_groups
from spinney.terminal.output import display

if TYPE_CHECKING:
    from spinney.store.parts import Store


app = typer.Typer()


@app.command()
def init(
    finish: Annotated[
        bool,
        typer.Option("--finish", help="Finish an upgrade, when the last node of an older version has left."),
    ] = False,
    grant: Annotated[
        list[str] | None,
        option(metavar="ROLE", help_="Let this database role use the store; may be repeated."),
    ] = None,
    sql: Annotated[
        bool, typer.Option("--sql", help="Print the SQL for a DBA to run, and change nothing.")
    ] = False,
    folders_only: Annotated[
        bool,
        typer.Option("--folders-only", help="Create only the folder root, for an existing store."),
    ] = False,
    local_folders: Annotated[
        bool,
        typer.Option(
            "--local-folders",
            help="For a new store: give each host a folder root of its own; a job that "
            "has started continues only on the host with its folder.",
        ),
    ] = False,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Create the store and its folder root, or upgrade an existing store.

    Nodes of the previous version work on meanwhile; changes that would disturb them wait for --finish.
    """
    config = resolve_settings(store)
    if finish:
        _finish(store, json=json)
        return
    if sql:
        with open_local_store(store) as s:
            typer.echo(s.script(grant or ()), nl=False)
        return
    facts = make_store(store, grant=grant or (), folders_only=folders_only, local_folders=local_folders)
    if facts.get("folders") == "local":
        place = "local: each node creates its own, as its spinney.toml or --folders says"
    else:
        place = str(config.folders)
    facts |= {"store": without_password(config.store), "folders": place}
    if json:
        display.print_json(facts)
        return
    out = display.console()
    for name in ("store", "folders", *sorted(facts.keys() - {"store", "folders"})):
        out.print(f"{name.replace('_', ' '):<16} {display.safe(facts[name])}")


def make_store(
    store: str | None, *, grant: Sequence[str] = (), folders_only: bool = False, local_folders: bool = False
) -> dict[str, str]:
    """Create the store and its folder root, or upgrade them, and return facts about the store for people, by
    their names.

    ``grant``: roles of PostgreSQL that may work with it. ``folders_only``: create no tables, only the folder
    root of an existing store, as on a further host. ``local_folders``: each host has a folder root of its
    own, which its nodes create; this can be chosen for a new store only.

    Doing it again changes nothing. Raises StoreUnusable for a folder root that belongs to another store,
    before anything is created, and, when the tables are made and granted, for one without a mark if the store has jobs:
    such a root is the mount point of a share that is not mounted, or the wrong folder, and the jobs would find theirs
    empty. ``folders_only`` marks it nevertheless.
    """
    from spinney.folders import folders

    config = resolve_settings(store)
    with open_local_store(store) as s:
        _require_own_folders(s, config)
        if not folders_only:
            s.create(local_folders=local_folders)
        if grant:
            s.grant(grant)
        facts = {**s.facts(), **_unfinished(s)}
        if not folders_only and facts.get("folders") != "local":
            _require_marked_root(s, config)
    if facts.get("folders") != "local":
        folders.write_token(config.folders, facts["folder_token"])
    return facts


def _unfinished(store: "Store") -> dict[str, str]:
    """Return the steps of an upgrade that wait for the last older node, as a fact to print; empty when there
    are none."""
    left = store.unfinished()
    steps = f"{', '.join(left)}; when the last node of an older version has left, run 'spinney init --finish'"
    return {"unfinished": steps} if left else {}


def _finish(store: str | None, *, json: bool) -> None:
    with open_local_store(store) as s:
        done = s.finish()
    if json:
        display.print_json({"finished": list(done)})
    elif done:
        typer.echo(
            f"the upgrade is finished ({', '.join(done)}); older versions of Spinney are refused from now on"
        )
    else:
        typer.echo("there is nothing to finish")


def _require_own_folders(store: "Store", config: Settings) -> None:
    """Raise StoreUnusable for a folder root that has another store's token, before anything is created.

    Two stores with one root would use the same folders, since both name them by the numbers of their jobs.
    """
    from spinney.folders import folders

    if not folders.is_marked(config.folders):
        return
    try:
        own = store.facts()["folder_token"]
    except StoreMissing as error:
        raise _not_its_own(config) from error
    except StoreUnusable:
        return  # an older store: ``create`` decides whether it can be upgraded
    try:
        folders.check_token(config.folders, own)
    except StoreUnusable as error:
        raise _not_its_own(config) from error


def _require_marked_root(store: "Store", config: Settings) -> None:
    """Raise StoreUnusable for a folder root without a mark, when the store has jobs."""
    from spinney.folders import folders

    if folders.is_marked(config.folders) or not store.job_lists.find(Filter(), limit=1):
        return
    raise StoreUnusable(
        f"the tables are up to date, but the store has jobs, and {config.folders} is not its folder root; mount the "
        f"shared folder there, or set folders below [spinney] in {FILE} to where the folders of the jobs are; if they "
        "are lost, 'spinney init --folders-only' makes an empty root"
    )


def _not_its_own(config: Settings) -> StoreUnusable:
    return StoreUnusable(
        f"the folder root {config.folders} belongs to another store than {without_password(config.store)}, so nothing "
        f"was created; set folders below [spinney] in {FILE} to a folder of its own, or name the store it belongs to "
        "with --store"
    )


@dataclass(frozen=True, kw_only=True)
class NodeOptions:
    """The options of ``node`` that are fields of its settings, under their names; None: not given, so that spinney.toml
    or the default applies."""

    name: Annotated[
        str | None, option(help_="The node's name (default: the host's).", complete=completion.nodes)
    ] = None
    slots: SlotsOption = None
    active: Annotated[
        list[str] | None,
        option(metavar="QUEUE", help_="Serve only this queue; may be repeated.", complete=completion.queues),
    ] = None
    ignored: Annotated[
        list[str] | None,
        option(
            "--ignore",
            metavar="QUEUE",
            help_="Serve all queues except this one; may be repeated.",
            complete=completion.queues,
        ),
    ] = None
    lease_period_s: Annotated[
        float | None,
        option(
            "--lease",
            metavar="TIME",
            parser=length("--lease"),
            help_="The lease period, for example 30 or 1m, at most 1h (default: 15 s).",
        ),
    ] = None
    drain_limit_s: Annotated[
        float | None,
        option(
            "--drain",
            metavar="TIME",
            parser=length("--drain"),
            help_="How long running jobs may finish after SIGTERM, for example 90 or 5m (default: 60 s).",
        ),
    ] = None
    metrics: Annotated[
        str | None,
        option(
            metavar="PORT",
            help_="Expose metrics for Prometheus on this port of 127.0.0.1, or as ADDRESS:PORT (default: nowhere).",
        ),
    ] = None
    run_dir: Annotated[
        Path | None,
        option(
            help_="The directory for locks and sockets of this host's nodes (default: beside the database file)."
        ),
    ] = None
    log_level: Annotated[
        str | None, option(help_="The log level: debug, info, warning or error (default: info).")
    ] = None

    def settings(self) -> dict[str, Any]:
        """Return the fields of ``NodeSettings`` that are given; the others have their defaults there."""
        return given_options(
            self,
            run_dir=None if self.run_dir is None else str(self.run_dir.absolute()),
            active=tuple(self.active or ()) or None,
            ignored=tuple(self.ignored or ()) or None,
        )


@app.command()
@with_option_groups
def node(
    app: Annotated[
        str | None,
        typer.Argument(
            help="The application, as module:attribute (default: 'app' of spinney.toml).", show_default=False
        ),
    ] = None,
    *,
    options: NodeOptions,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace a running node of this name, which drains.")
    ] = False,
    folders: Annotated[
        str | None,
        option(
            metavar="DIR",
            help_="The node's folder root (default: as in spinney.toml, then beside the database file).",
        ),
    ] = None,
    store: StoreOption = None,
) -> None:
    """Run a node, which takes jobs from the store and runs their stages, until SIGTERM."""
    from spinney.node import settings_table
    from spinney.node.run import become_guard
    from spinney.node.settings import NodeSettings

    configured = resolve_settings(store, folders)
    application = app or configured.app
    if application is None:
        raise UsageError(
            "no application is named; write 'spinney node module:app', or set app in spinney.toml"
        )
    _require_utf8(Path.cwd(), configured.folders)
    settings = NodeSettings(
        store=configured.store,
        folders=str(configured.folders),
        app=application,
        replace=replace,
        **{**settings_table.read(Path.cwd()), **options.settings()},
    )
    become_guard(settings)


def _require_utf8(*paths: Path) -> None:
    """Raise UsageError for a path that is not valid UTF-8: a node passes its paths to its workers as JSON, which cannot
    hold such a path."""
    for path in paths:
        try:
            str(path).encode()
        except UnicodeEncodeError:
            raise UsageError(
                f"the path {display.safe(str(path))} is not valid UTF-8, so that no node can work there; rename the "
                "folder"
            ) from None
