"""Other services that hear when jobs finish: registration, deliveries, sending."""
