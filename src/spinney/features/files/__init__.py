"""Files and output of jobs: listing, reading, following, uploading.

``job_folder`` reads a job's folder wherever it is; ``content`` and ``output_stream`` send files to clients,
``folder_writes`` and ``uploads`` receive them; ``page``, ``api`` and the commands show them.
"""
