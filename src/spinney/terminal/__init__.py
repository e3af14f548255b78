"""What every command of the command line needs, whichever feature it belongs to.

``connection``     opens the store or the server that a command works on
``endpoint``       decides which of the two is meant, and where the token is
``remote``         the client for the server, which waits while it is away
``patience``       waits for a store that stops answering for a while
``options``        arguments and options that commands share
``commands``       commands made from command classes: all but how their answers look
``command_index``  which commands there are, and which module has each
``applications``   commands that installed packages bring
``help_texts``     how help names values and summarises commands
``completion``     the names that a shell offers for an argument
``output``         tables, JSON and lines on stdout, progress, and the whole terminal
``confirmation``   the question before what cannot be undone
``for_each``       one command for several things
``interrupts``     Ctrl-C at any moment
``exit_codes``     the codes with which commands end

The commands themselves are in the features, which import this package and not the other way round;
``spinney.cli`` puts them together. Where it can, a command is made from a command class (``commands``); others open
``open_commands``, which performs commands (``spinney.commands.Performs``) on a store or through a server. Neither cares
which of the two it is; what needs the store itself says so by ``open_local_store`` or ``open_control``, and is refused
where a server is named. Through a server the user is known by the token, so ``--by`` is refused there.

A line passes these modules in this order: ``interrupts`` takes SIGINT over, ``command_index`` names the
module to load, Typer reads the options, ``endpoint.choose`` decides between store and server, the command
opens one of them and shows the answer by ``output.display``. An error is raised as a ``SpinneyError`` and never
printed here; ``spinney.cli.main`` makes the sentence and the exit code of it.

Modules here load as little as possible, because each command waits for them: imports for one kind of command are inside
functions. A feature's ``cli`` loads the command classes that its commands are made from. Results go to stdout and
everything else (progress, questions, errors) to stderr. Text of users and jobs is escaped before it reaches a terminal.

Specified by ``tests/cli/test_endpoint.py`` (which store or server), ``tests/cli/test_display.py`` (what is printed),
``tests/cli/test_option_groups.py`` (shared options), ``tests/cli/test_model_options.py`` (those of models),
``tests/cli/test_table_layout.py`` (narrow tables), ``tests/cli/test_made_commands.py`` (commands of command classes),
``tests/cli/test_applications.py`` (commands of packages), ``tests/cli/test_completion.py`` (names that are offered),
``tests/cli/test_interrupts.py`` (Ctrl-C), ``tests/cli/test_confirmation.py`` (questions),
``tests/cli/test_closed_streams.py`` (streams that are closed) and ``tests/cli/test_top_board.py`` (keys).
"""
