"""Arguments and options that several commands share, declared once.

``arguments``      single arguments and options, with their help texts
``filters``        the options that select jobs
``option_groups``  options declared once as a dataclass, for several commands
``model_options``  options declared once as a model of pydantic, for a command and a route

Specified by ``tests/cli/test_option_groups.py`` (dataclasses), ``tests/cli/test_model_options.py`` (models)
and ``tests/cli/test_commands.py`` (help).
"""
