"""Memory: peak, what an access mix reaches, capacity, energy, edge."""
