"""A batch that reports by mail, for ``test_whole``."""

import os

from spinney import Job, Spinney
from spinney.reports import MailSettings, Outbox, Security

app = Spinney()
outbox = Outbox(
    app,
    mail=lambda: MailSettings(
        host="127.0.0.1",
        port=int(os.environ["MAIL_PORT"]),
        security=Security.NONE,
        away_s=0.3,
        timeout_s=20.0,
    ),
)


@app.job
def batch(job: Job, mails: int) -> None:
    for n in range(mails):
        job.submit(
            outbox.mail.options(key=f"{job.id}.{n}", forever=True),
            sender="archive@example.org",
            to=["ada@example.org"],
            subject=f"Report {n}",
            text="All well.",
        )
