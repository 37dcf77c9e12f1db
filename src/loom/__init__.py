"""Loom: one shared memory for many AI agents."""

__version__ = "0.1.0"
