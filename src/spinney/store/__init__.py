"""Where jobs are kept. ``contract`` says what every store must do; ``sql`` is the first that does."""
