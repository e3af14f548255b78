"""The report of a batch: what was deposited, what failed, and what has changed since the last report.

    facts.py     what is told of a batch and of each object     building.py  the report made of them
    wording.py   as plain text     page.py  as HTML              mailing.py   as the parameters of a mail
    files.py     as files, whole, whatever the number of objects

All but ``files`` is pure: values in, values and text out. A report has a number (1, 2, …); from the second on it is an
update, and says what is otherwise than in the last one that was told.

Who writes what, in this order: ``files.write`` puts everything of report N into one folder of its own, each file
whole or not there, the same bytes from the same report. Then the mail is submitted under a key of batch and number
(``mail.key``), with a Message-ID made of them. Only then is N the last report that was told, which the next one is
compared with. Cut off anywhere, the same number is written and submitted again, and never another.
"""

from spinney.apps.ingest.report.builder import Changes, Report, Told, Totals, build
from spinney.apps.ingest.report.facts import BatchFacts, Kind, ObjectEnd
from spinney.apps.ingest.report.files import Written, read_told, write
from spinney.apps.ingest.report.mail import key, mail
from spinney.apps.ingest.report.page import html
from spinney.apps.ingest.report.text import text

__all__ = [
    "BatchFacts",
    "Changes",
    "Kind",
    "ObjectEnd",
    "Report",
    "Told",
    "Totals",
    "Written",
    "build",
    "html",
    "key",
    "mail",
    "read_told",
    "text",
    "write",
]
