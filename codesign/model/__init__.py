"""Physics: pure functions of numbers, for scalars and for batches alike."""
