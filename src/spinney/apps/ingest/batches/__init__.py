"""A batch is a submitted payload; its stages read it, make a job for each object, wait for these, and report.

``stages``           the stages, and the files that they keep in the batch's folder
``batch_reports``    the reports of a batch, from its jobs and the inventory
``held_batches``     batches that are held on submission, by a file each
``outgoing_mails``   attachments of reports' mails, kept until the mail is sent

A payload that is not admitted makes no object at all. When an object is requeued and settles, the batch regrows: the
reporting stage runs again, and its report is an update. The number of a report changes only after its mail was
submitted, so that an interrupted report is written again under the same number.

Specified by ``tests/apps/ingest/batch`` and ``tests/apps/ingest/whole``.
"""
