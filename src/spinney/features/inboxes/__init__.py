"""Inboxes: folders where people and programs drop files, and uploads to them; each file becomes a job.

``sql``           inboxes, the node that looks into each, and the arrivals there
``arrival_rows``  the rows of arrivals, and the job that is made of each
``uploads``       uploads in as many requests as it takes, in the name of the uploader
``commands``      what operators and admins do with inboxes
``api``           the routes of uploads
``cli``           the command ``inbox``
``page``          the pages, with the form that uploads

Nodes do the work on dropped files (``spinney.node.services.inboxes`` and ``intake``); this package has the decisions
and their rows. For each inbox one node looks into the folder. When something has come to rest, one transaction writes
its arrival and its job, which is held; the node moves the file into the job's folder; then ``finish`` releases the job.
A name has at most one open arrival, so whoever comes back after a crash continues with the same job.

An upload (``spinney.folders.upload_folder``) grows in a file of its own and gets its arrival and job when all bytes are
there. A drop is submitted with the rights of the inbox's maker, an upload with those of the uploader. Making an inbox
takes an admin without limits, because nodes then read and move the files in that folder.

Specified by ``tests/contract/test_inboxes.py`` (one node an inbox, one job a drop), ``tests/node/test_intake.py`` (what
is taken, rejected, and resumed after crashes), ``tests/node/test_inboxes.py`` (real nodes),
``tests/service/test_inbox_uploads.py`` (uploads), ``tests/server/api/test_inbox_uploads.py`` (uploads over HTTP),
``tests/cli/test_inboxes.py`` (the command), ``tests/cli/remote/test_inbox_uploads.py`` (uploads through a server that
is killed), ``tests/server/pages/test_inboxes.py`` (the pages) and ``tests/browser/test_inbox_uploads.py`` (uploads from
a browser).
"""
