"""From square millimetres, stacks, cables and watts to dollars per token."""
