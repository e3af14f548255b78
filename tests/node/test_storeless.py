"""A stage does not reach a store by way of an application: the store that it would open need not be its node's."""

import json

import pytest
from executor_fixtures import host_in

from new_store import new_store
from spinney import Spinney
from spinney.model.errors import UsageError
from spinney.testing import run_stage

APP = """
from spinney import Spinney

app, nameless, elsewhere = Spinney(), Spinney(), Spinney({elsewhere!r})

for each in (app, nameless, elsewhere):
    each.job(name="other")(lambda: None)

VERBS = {{
    "submit": lambda a: a.types["other"].submit(),
    "submit_many": lambda a: a.submit_many("other", [{{}}]),
    "submit_to": lambda a: a.submit_to("default"),
    "results": lambda a: a.results(1),
    "job_info": lambda a: a.job_info(1),
    "wait": lambda a: a.wait(1),
}}

def refusals(which):
    said = {{}}
    for verb, call in VERBS.items():
        try:
            said[verb] = str(call(globals()[which]))
        except BaseException as error:
            said[verb] = f"{{type(error).__name__}}: {{error}}"
    return said

@app.job
def calls(which: str): return refusals(which)

@app.job
async def calls_later(which: str): return refusals(which)

@app.job
def goes_elsewhere(): return elsewhere.types["other"].submit()
"""
REFUSED = (
    "UsageError: a worker has no connection to the store of its node, so no store was opened; within a stage"
)


@pytest.fixture
async def host(tmp_path, monkeypatch):
    # What a stage would find by its working directory or its environment: a store, though not the node's.
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPINNEY_STORE", new_store(tmp_path / "spinney.db"))
    (tmp_path / "stray_app.py").write_text(APP.format(elsewhere=new_store(tmp_path / "elsewhere.db")))
    for name, store in (("loaded_app", ""), ("naming_app", repr(new_store(tmp_path / "named.db")))):
        (tmp_path / f"{name}.py").write_text(
            f"from spinney import Spinney\napp = Spinney({store})\napp.job(name='other')(lambda: None).submit()\n"
        )
    async with host_in(tmp_path) as host:
        yield host


@pytest.mark.parametrize(("stage", "concurrent"), [("calls", False), ("calls_later", True)])
async def test_a_stage_that_asks_for_a_store_is_refused_unless_the_code_names_it(
    host, tmp_path, stage, concurrent
):
    worker = host.start(app="stray_app:app", path=[tmp_path], concurrent=concurrent)
    for fence, which in enumerate(("app", "nameless"), 1):
        detail = await host.run(worker, stage, json.dumps({"which": which}), fence=fence, type_=stage)
        document = json.loads(detail["result"])
        assert len(document) == 6
        assert {verb: text for verb, text in document.items() if not text.startswith(REFUSED)} == {}
    if not concurrent:
        detail = await host.run(worker, "goes_elsewhere", fence=3, type_="goes_elsewhere")
        assert detail["result"] == "1"


@pytest.mark.parametrize("name", ["loaded_app", "naming_app"])
async def test_an_application_that_submits_while_a_worker_loads_it_is_refused(host, tmp_path, name):
    # Whether or not its code names the store: every worker that starts would submit the job once more.
    worker = host.start(app=f"{name}:app", path=[tmp_path])
    await host.ended(worker)
    assert f"{name}: the module uses the store while it is imported" in host.hellos[0].error


def test_a_bench_refuses_it_too(tmp_path):
    app = Spinney(new_store(tmp_path / "spinney.db"))
    other = app.job(name="other")(lambda: None)
    strays = app.job(name="strays")(lambda: other.submit())
    with pytest.raises(UsageError, match=r"write job.submit\(other, …\)"):
        run_stage(strays)
    assert other.submit() == 1, "beside the stage the application reaches its store"
    app.close()
