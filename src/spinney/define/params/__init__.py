"""Parameters of a job type: read from annotations, checked at submission, told by name when wrong.

``signature`` what a function takes · ``parameters`` all that a type takes, with its JSON schema ·
``schema`` the same check without the code · ``validation_errors`` the sentences, alike for both · ``secrets`` how a
secret is declared · ``masking`` what is shown of it · ``environment`` the variables of programs · ``duration_field``
lengths of time in models · ``hints`` "did you mean" · ``values`` any kept value as JSON text. ``hints`` and
``values`` know nothing of the others, and are all that the handle of a job needs.
"""
