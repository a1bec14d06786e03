"""The HTTP study service."""
