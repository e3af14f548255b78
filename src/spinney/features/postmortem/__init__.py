"""Failures looked at after the fact: the frames that were kept, on the command line and on the page of the job.

``kept_frames``  finds the document with the frames of an attempt in the job's folder
``shell``        walks through them as ``pdb`` does
``cli``          the command ``postmortem``
``page``         the frames on the page of a job

The frames are described by the worker when the stage fails (``spinney.postmortem``) and lie beside the output of the
attempt. Looking at them loads and runs no code of the application, needs no node, and works for jobs of any age whose
folder still exists. The shell evaluates nothing: an expression only follows the parts that were kept.

Specified by ``tests/cli/test_postmortem.py`` (the shell, and the output without a terminal) and
``tests/server/pages/test_postmortem.py`` (the page).
"""
