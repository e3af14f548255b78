"""The report of a batch lists the deposited objects, the failed ones, and the changes since the last report.

``facts``    the data of a batch and of each object
``builder``  the report made of them
``lines``    the wording of its parts, with foreign text made printable
``text``     the report as plain text
``page``     the report as HTML
``mail``     the report as the parameters of a mail job
``files``    the report as files

All but ``files`` is pure: values in, values and text out. A report has a number (1, 2, …); from the second on it is an
update, and lists the differences from the last one that was sent.

Who writes what, in this order: ``files.write`` puts all files of report N into one folder of its own, each file
complete or absent, the same bytes from the same report. Then the mail is submitted under a key of batch and number
(``mail.key``), with a Message-ID made of them. Only then is N the last report that was sent, which the next one is
compared with. After an interruption the same number is written and submitted again, and never another.

Specified by ``tests/apps/ingest/report``.
"""

from spinney.apps.ingest.report.builder import PreviousReport as PreviousReport
from spinney.apps.ingest.report.builder import Report as Report
from spinney.apps.ingest.report.builder import build as build
from spinney.apps.ingest.report.facts import BatchFacts as BatchFacts
from spinney.apps.ingest.report.facts import Kind as Kind
from spinney.apps.ingest.report.facts import ObjectEnd as ObjectEnd
from spinney.apps.ingest.report.files import read_previous as read_previous
from spinney.apps.ingest.report.files import write as write
from spinney.apps.ingest.report.mail import key as key
from spinney.apps.ingest.report.mail import mail as mail
from spinney.apps.ingest.report.page import html as html
from spinney.apps.ingest.report.text import text as text
