"""Upkeep: old results are thinned, once a day."""

import time

from spinney import Job
from spinney.apps.monitor import settings
from spinney.apps.monitor.application import UPKEEP, app
from spinney.apps.monitor.inventory import thinning
from spinney.apps.monitor.inventory.database import database

_DAY_US = 86_400_000_000


@app.job(name="monitor.thin", queue=UPKEEP, max_attempts=3)
def thin(job: Job) -> int:
    """Remove results that are older than the settings' ``keep_days`` and changed nothing."""
    before_us = time.time_ns() // 1000 - settings.load().keep_days * _DAY_US
    removed = 0
    while number := thinning.thin(database(), before_us):
        removed += number
        job.check_cancelled()
    return removed


app.schedule(thin, cron="30 3 * * *", name="monitor.thin")
