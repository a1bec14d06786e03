"""Search: ask for a batch, evaluate it, store it, learn from it."""
