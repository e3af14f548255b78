"""Users, tokens, sign-in and sessions."""
