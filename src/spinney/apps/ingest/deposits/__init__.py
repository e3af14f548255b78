"""What a deposit is: its order, description, identity, priority and state, and what is refused early."""
