"""A secret given on the command line is kept for the stage, and no command shows it."""

from pydantic import SecretStr

from contract.words import RealClock, Site
from spinney import Spinney
from spinney.folders import folders
from spinney.model.homes import PIECE_BYTES
from spinney.model.jobs import Filter
from spinney.model.values.paths import OWN
from spinney.store.sql import open_store

from .shell import Shell

SECRET = "open sesame"
app = Spinney()


@app.job
def fetch(url: str, password: SecretStr) -> None:
    """Its code is never run."""


def test_no_command_shows_a_secret(bare: Shell) -> None:
    bare.ok("init")
    store = open_store(f"sqlite:///{bare.folder}/spinney.db")
    store.register([fetch.spec], [])

    parameters = ("-p", "url=https://example.org", "-p", f"password={SECRET}")
    job = bare.ok("submit", "fetch", *parameters).split()[-1]
    bare.ok("schedule", "add", "nightly", "fetch", "--every", "1h", *parameters)
    outputs = [
        bare.ok(*words)
        for words in (
            ("list", "--json"),
            ("show", job),
            ("show", job, "--json"),
            ("tree", job, "--json"),
            ("explain", job),
            ("schedule", "list", "--json"),
            ("schedule", "show", "nightly"),
            ("audit", "--json"),
        )
    ]
    (bare.folder / "bad.json").write_text(f'{{"url": "u", "password": ["{SECRET}"]}}')
    refusal = bare.refused(2, "submit", "fetch", "--params-file", "bad.json")
    params = store.jobs(Filter())[0].params
    store.close()

    assert SECRET not in "".join([*outputs, refusal])
    assert sum("••••••" in text for text in outputs) >= 6
    assert "https://example.org" in outputs[1]
    assert params == {"url": "https://example.org", "password": SECRET}


def test_no_command_prints_a_secret_from_the_files_of_the_engine(bare: Shell) -> None:
    bare.ok("init")
    store = open_store(f"sqlite:///{bare.folder}/spinney.db")
    site = Site(store, RealClock())
    store.register([fetch.spec], [])
    job = bare.ok("submit", "fetch", "-p", "url=u", "-p", f"password={SECRET}").split()[-1]
    lease = site.run(int(job))
    folder = folders.make(bare.folder / "spinney.folders", int(job))
    (folder / "own.txt").write_text(SECRET)
    (folder / OWN).mkdir()
    output = f"{OWN}/{lease.stage}.{lease.fence}.stdout"
    (folder / output).write_text("x" * (PIECE_BYTES - 5) + SECRET + "\n")
    (folder / OWN / "fetch.params.json").write_text(SECRET)
    site.pass_(lease)
    # Another attempt has written the beginning of its secret, and runs on
    running = site.submit_one("fetch", params={"url": "u", "password": SECRET})
    (claimed,) = site.claim_by_job().values()
    begun = folders.make(bare.folder / "spinney.folders", running) / OWN
    begun.mkdir()
    (begun / f"{claimed.stage}.{claimed.fence}.stdout").write_text(f"log in with {SECRET[:-1]}")
    store.close()

    assert SECRET[:4] not in bare.ok("logs", str(running))
    for words in (("logs", job), ("files", job, output)):
        printed = bare.ok(*words)
        assert printed.endswith(f"x{'*' * len(SECRET)}\n")
        assert len(printed) >= PIECE_BYTES
    assert bare.ok("files", job, "own.txt") == SECRET
    assert "some are secret" in bare.refused(1, "files", job, f"{OWN}/fetch.params.json")
