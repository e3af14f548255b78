"""How a function or a program becomes a job type, and the handle that its stages get. Workers load it: nothing here
knows a store."""
