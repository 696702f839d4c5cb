"""Engines for quantised operators: there are none."""
engine = "none"
supported_engines = ["none"]
