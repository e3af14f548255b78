"""How a function or a program becomes a job type, and the handle that its stages get. Workers import it, so it imports
no store."""
