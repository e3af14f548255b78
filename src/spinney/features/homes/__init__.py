"""Homes: in a store whose folders are local, which host has the folder of a job.

``sql``          the homes of jobs, and the release of jobs from a home that is lost
``fetches_sql``  requests for files on other hosts, and their answers, as rows
``fetches``      a reader of such files, which waits for the answer
``commands``     homes of a host, and the release of one job or of all
``cli``          the command ``rehome``

A job gets its home where an attempt of it begins, and from then on only nodes with that folder root may claim it.
Spinney moves no folder. An operator who knows that a host is lost releases its jobs: each goes on elsewhere at the
stage where it stopped, with an empty folder. When the host comes back, the jobs that have not begun elsewhere belong to
it again.

Files of other hosts travel through the store, in pieces, so that no node listens on a port and the rights are those of
the store: the reader writes a request, a node of that home answers it, the reader takes the answer away.

Specified by ``tests/contract/test_homes.py`` (which node may claim what), ``tests/node/test_homes.py`` (two hosts with
two folder roots), ``tests/node/test_folder_reader.py`` (what a node hands out) and ``tests/cli/test_rehome.py`` (the
command).
"""
