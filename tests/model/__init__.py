"""The rules of the model, each against the sentence of the design it comes from."""
