"""Freezing: parameters and attributes become constants of a module's methods."""
