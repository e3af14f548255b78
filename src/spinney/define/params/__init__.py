"""The parameters of a job type are checked here at submission, hidden where they are secrets, and passed to programs.

``schema``             parameters checked by the JSON schema that nodes registered, without the application's code
``validation_errors``  the sentence about a wrong parameter: which one, why, what is expected
``secrets``            how a parameter is declared as a secret
``redaction``          secrets hidden wherever parameters are shown
``environment``        the environment variables by which a program gets its parameters
``duration_field``     a duration as a field of a pydantic model
``values``             results and data of stages as JSON text

``values`` imports none of the others, and is all that the handle of a job needs. Real values of secrets are stored,
because stages need them; so everything that shows parameters (lists, pages, API, logs, messages of failures) must pass
through ``redaction``.

Specified by ``tests/define/test_parameters.py``, ``tests/define/test_redaction.py``, ``tests/define/test_secrets.py``
and ``tests/define/test_environment.py``.
"""
