"""Parameters of a job type: read from annotations, checked at submission, with messages that name wrong ones.

``schema`` checks parameters by a JSON schema, without the application's code · ``validation_errors`` words the messages
· ``secrets`` declares a secret · ``redaction`` hides it · ``environment`` names the variables of programs ·
``duration_field`` is for durations in models · ``values`` converts any stored value to JSON text. ``values`` imports
none of the others, and is all that the handle of a job needs."""
