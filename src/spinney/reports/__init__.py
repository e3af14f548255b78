"""One outbox for mail and webhooks: what an application tells people and other services.

A message is a job. An application calls ``Outbox(app)`` once, which declares the queue ``outbox`` and the job types
``reports.mail`` and ``reports.webhook``; whoever has something to say submits one. So messages are kept, tried again,
held, listed, cancelled and retried by the same means as all other work, and the job's message is the last answer.

    outbox = Outbox(app, admit=allowed)
    outbox.mail.options(key="batch-7.report-1", forever=True).submit(sender=…, to=[…], subject=…, text=…)
    outbox.webhook.submit(url=…, body={…}, secret="depositor")

Who writes what, in this order, and what a crash leaves:

``reports.mail``: Message-ID and Date go into ``job.data`` before anything is sent, so that every copy bears the same.
Then the mail server has the message, then ``job.data`` says who has got it and who was refused for good, and the next
attempt turns to the others alone. Killed between the server's answer and that entry, the message is sent again to
those recipients, with the same Message-ID and Date and the same bytes: most mail systems show it once.

``reports.webhook``: the delivery's id and the number of this try go into ``job.data`` before the request. Killed
after the request, it is sent again under the same ``Spinney-Delivery``: receivers keep the ids that they have seen.

Secrets come from the environment of the nodes, by names in the settings; no parameter, log or message holds one.

``outbox`` what an application calls · ``settings`` where to, and how long · ``mail``, ``webhooks`` the stages, and
what becomes of their jobs · ``smtp``, ``http_post`` one conversation · ``mail_message``, ``addresses``,
``mail_attachments`` what a mail consists of · ``signatures`` how receivers know that it is us · ``retry_times`` when
again · ``printable`` foreign text.

Beside it, and no jobs: ``webhook_delivery`` one delivery of a webhook that an operator made (docs/webhooks.md),
``safe_transport`` where such requests may go.
"""

from spinney.reports.outbox import Outbox
from spinney.reports.settings import MailSettings, Security, WebhookSettings
from spinney.reports.signatures import BadSignature, verify

__all__ = ["BadSignature", "MailSettings", "Outbox", "Security", "WebhookSettings", "verify"]
