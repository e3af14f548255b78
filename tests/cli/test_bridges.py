"""``spinney bridges``."""

import json
import time
from contextlib import closing

from spinney.store.sql import open_store

from .shell import Shell


def test_a_bridge_is_forgotten_in_the_name_of_who_says_so(shell: Shell) -> None:
    day_ago_us = time.time_ns() // 1000 - 86_400_000_000
    with closing(open_store(f"sqlite:///{shell.folder}/spinney.db")) as store:
        for name in ("disbatch:mig:oak", "disbatch:mig:elm"):
            store.bridges.take(name, "disbatch", "node", now_us=day_ago_us)

    document = shell.ok("bridges", "--forget", "disbatch:mig:oak", "--by", "ann", "--json")
    sentence = shell.ok("bridges", "--forget", "disbatch:mig:elm")

    assert json.loads(document) == {"deleted": "disbatch:mig:oak"}
    assert sentence == "bridge disbatch:mig:elm is forgotten\n"
    assert shell.listed("bridges") == []
    assert next(e["by"] for e in shell.listed("audit") if e["verb"] == "bridge") == "ann"
