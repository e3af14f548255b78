"""Files and output of jobs: listing, reading, following and uploading.

``job_folder``     reads a job's folder, on this host or through a node of the host that has it
``job_files``      the same for commands, which may also read through a server
``content``        files as pages and the API send them, with secrets redacted
``output_stream``  output that is followed while an attempt writes it
``folder_writes``  puts files into a folder: one rename each, durable, without following links
``uploads``        jobs with files, under a hold until the files are in place; the right to add files later
``job_uploads``    both together, for pages and the API
``api``            the routes of files and output
``page``           output and listings on pages
``cli``            the command ``files``
``logs_cli``       the command ``logs``

Paths come from users, and folders are written by their programs. So readers and writers walk from the job's folder
down, directory by directory, without ``..`` and without following links (``spinney.folders.folder_reader``). What the
engine keeps below ``.spinney`` may hold secret parameters, which are redacted piece by piece.

A job that is submitted with files is accepted under a hold of its own, in one transaction; then its files are renamed
into its folder; then the hold is released. So no crash lets a job start with half of its files. Where folders are local
to hosts, a file elsewhere is fetched through the store (``spinney.features.homes.fetches``); it cannot be written from
here.

Specified by ``tests/server/api/test_files.py`` (the routes), ``tests/server/api/test_submissions.py`` (jobs with
files), ``tests/server/api/test_full_disk.py`` (a full disk), ``tests/server/pages/test_output.py`` (output on pages),
``tests/server/pages/test_job_upload.py`` (uploads on the page of a job), ``tests/node/test_folder_reader.py`` (what may
be read), ``tests/node/test_homes.py`` (files of other hosts), ``tests/cli/test_rehome.py`` (the command ``files``) and
``tests/cli/test_with_node.py`` (the command ``logs``).
"""
