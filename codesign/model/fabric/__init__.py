"""Topologies, collectives, contention, and the wait for the slowest."""
