"""How a function or a program becomes a job type, the handle that its stages get, and the guard that keeps them from
opening stores. Workers import it, so it imports no store."""
