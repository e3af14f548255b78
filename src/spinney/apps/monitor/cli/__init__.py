"""Check network services around the clock, and know who answers for them.

``setup`` init, import, harvest · ``run`` the node and the line protocol · ``views`` services, entities, tasks,
status, history · ``orders`` check and stop."""

import typer

from spinney.apps.monitor.cli import orders, run, setup, views

app = typer.Typer(no_args_is_help=True, help=__doc__.splitlines()[0])
for module in (setup, run, views, orders):
    module.add_to(app)
