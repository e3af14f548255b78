"""An application declares its job types with this package: from a function or a program to a job type, and its handle.

``jobtype``      job types and their stages, made of functions, programs and external stages
``job``          the handle that a running stage gets
``params``       parameters: checked at submission, converted for stages, redacted where they are shown
``stage_guard``  the refusal to open stores in processes in which stages run

Submitters, nodes and workers all import an application, and with it this package. A worker must not reach a store, so
nothing here imports one: what a stage asks of the engine goes through a ``Port`` (``job.port``), which the supervisor
answers. What can be wrong in a declaration is refused where it is declared, by a ``UsageError``, and not in the first
job.

Specified by ``tests/define``, and by ``tests/node/test_storeless.py`` (a stage reaches no store).
"""
