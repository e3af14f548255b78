"""One outbox for mail and webhooks: the messages that an application sends to people and other services.

A message is a job. An application calls ``Outbox(app)`` once, which declares the queue ``outbox`` and the job types
``reports.mail`` and ``reports.webhook``; code that has a message to send submits one. So messages are kept, tried
again, held, listed, cancelled and retried by the same means as all other work, and the job's message is the last
answer.

    outbox = Outbox(app, admit=allowed)
    outbox.mail.options(key="batch-7.report-1", forever=True).submit(sender=…, to=[…], subject=…, text=…)
    outbox.webhook.submit(url=…, body={…}, secret="depositor")

Who writes what, in this order, and what a crash leaves:

``reports.mail``: Message-ID and Date go into ``job.data`` before anything is sent, so that every copy has the same.
Then the mail server takes the message, then ``job.data`` records who has received it and who was refused for good,
and the next attempt sends to the others alone. If the stage is killed between the server's answer and that entry, the
message is sent again to those recipients, with the same Message-ID and Date and the same bytes: most mail systems show
it once.

``reports.webhook``: the delivery's id and the number of this try go into ``job.data`` before the request. If the stage
is killed after the request, the request is sent again under the same ``Spinney-Delivery``: receivers keep the ids that
they have seen.

Secrets come from the environment of the nodes, by names in the settings; no parameter, log or message holds one.

``outbox`` the interface for applications · ``settings`` servers and retry limits · ``mail``, ``webhooks`` the stages,
and the outcomes of their jobs · ``smtp``, ``http_post`` one conversation with a server · ``mail_message``,
``addresses``, ``mail_attachments`` the parts of a mail · ``signatures`` how receivers authenticate a request ·
``retry_times`` the delay before the next try · ``printable`` escaping of foreign text.

``safe_addresses`` decides which addresses a request to a user's URL may reach. ``safe_transport`` puts it below
httpx, for callbacks and for the deliveries of webhooks that operators made (``spinney.features.webhooks``,
docs/webhooks.md), which are no jobs; the downloads of ``spinney.apps.ingest`` have connections of their own.
"""

from spinney.reports.outbox import Outbox
from spinney.reports.settings import MailSettings, Security, WebhookSettings
from spinney.reports.signatures import BadSignature, verify

__all__ = ["BadSignature", "MailSettings", "Outbox", "Security", "WebhookSettings", "verify"]
