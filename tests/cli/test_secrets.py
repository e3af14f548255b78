"""A secret given on the command line is kept for the stage, and no command shows it."""

from pydantic import SecretStr

from spinney import Spinney
from spinney.model.jobs import Filter
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

    given = ("-p", "url=https://example.org", "-p", f"password={SECRET}")
    job = bare.ok("submit", "fetch", *given).split()[-1]
    bare.ok("schedule", "add", "nightly", "fetch", "--every", "1h", *given)
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
