"""Processes that a launcher starts again when they fail; there is no launcher."""
