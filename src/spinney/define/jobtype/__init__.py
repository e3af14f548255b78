"""Functions and programs become job types here, when an application's module is imported.

``job_types``    ``JobType``: a handle for submissions, the spec that nodes register, and the stages' runners
``stage``        the options of a stage, and stages made of functions, programs and external stages
``functions``    which functions may be stages, so that a worker finds them again
``signature``    parameters read from the annotations of a function
``parameters``   parameters checked, made JSON, and converted back for a stage
``json_schema``  the JSON schemas of parameters, with what pydantic leaves out
``polls``        job types that submit a job for each row of a list, again and again

The decorators of ``spinney.app`` call this package. A ``JobType`` has two sides: the ``spec`` (``spinney.model.types``)
is data that nodes register in the store and that every program can read; the runners exist only in processes that have
imported the application. Parameters are checked at submission with the code of the type or, by whoever has only the
spec, with its JSON schema (``spinney.define.params.schema``): both must refuse the same values with the same sentence.

Specified by ``tests/define/test_job_types.py``, ``tests/define/test_declarations.py``,
``tests/define/test_functions.py``, ``tests/define/test_parameters.py`` and ``tests/define/test_polls.py``.
"""

from spinney.define.jobtype.job_types import ConfiguredJob, JobType, Pipeline, SubmittableType

__all__ = ["ConfiguredJob", "JobType", "Pipeline", "SubmittableType"]
