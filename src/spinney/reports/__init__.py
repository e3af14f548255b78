"""One outbox for mail and webhooks: the messages that an application sends to people and other services.

``outbox``            the interface for applications: a queue and two job types
``settings``          servers, secrets by name, and limits of retries
``mail``              the stage that sends a mail, and the outcome of its job
``webhooks``          the stage that calls a webhook, and the outcome of its job
``smtp``              one conversation with a mail server
``http_post``         one POST, and the part of the answer that is kept
``mail_message``      a mail as bytes
``addresses``         which mail addresses are accepted
``mail_attachments``  files that are sent only while they have their digest
``signatures``        how receivers authenticate a request
``retry_times``       the delay before the next try
``safe_addresses``    which addresses a request to a user's URL may reach
``safe_transport``    the same below httpx, with a limit on the whole request
``printable``         text of other systems, escaped

A message is a job. An application calls ``Outbox(app)`` once, which declares the queue ``outbox`` and the job types
``reports.mail`` and ``reports.webhook``; code that has a message to send submits one. So messages are kept, tried
again, held, listed, cancelled and retried by the same means as all other work, and the job's message is the last
answer.

    outbox = Outbox(app, admit=allowed)
    outbox.mail.options(key="batch-7.report-1", forever=True).submit(sender=…, to=[…], subject=…, text=…)
    outbox.webhook.submit(url=…, body={…}, secret="depositor")

Who writes what, in this order, and what a crash leaves:

``reports.mail``: Message-ID and Date go into ``job.data`` before anything is sent, so that every copy has the same.
Then the mail server takes the message, then ``job.data`` records who has received it and who was refused for good, and
the next attempt sends to the others alone. If the stage is killed between the server's answer and that entry, the
message is sent again to those recipients, with the same Message-ID and Date and the same bytes: most mail systems show
it once.

``reports.webhook``: the delivery's id and the number of this try go into ``job.data`` before the request. If the stage
is killed after the request, the request is sent again under the same ``Spinney-Delivery``: receivers keep the ids that
they have seen.

Secrets come from the environment of the nodes, by names in the settings; no parameter, log or message holds one.
Redirects are not followed and no proxy is used, so that a request goes only where its address was checked.

``safe_transport`` also carries the deliveries of webhooks that operators made (``spinney.features.webhooks``,
docs/webhooks.md), which are no jobs; the downloads of ``spinney.apps.ingest`` have connections of their own.

Specified by ``tests/reports/test_outbox.py`` (messages as jobs), ``tests/reports/test_mail.py`` (mail),
``tests/reports/test_webhook.py`` (webhooks), ``tests/reports/test_safe_transport.py`` (addresses that are refused),
``tests/reports/test_signatures.py`` (signatures), ``tests/reports/test_retry_times.py`` (delays),
``tests/reports/test_settings.py`` (settings) and ``tests/reports/test_webhook_delivery.py`` (deliveries of operators).
"""

from spinney.reports.outbox import Outbox
from spinney.reports.settings import MailSettings, Security, WebhookSettings
from spinney.reports.signatures import BadSignature, verify

__all__ = ["BadSignature", "MailSettings", "Outbox", "Security", "WebhookSettings", "verify"]
