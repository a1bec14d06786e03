"""Studies and trials in the database; the only package that knows SQL."""
