"""Passes over the graphs of exported programs, under the names that PyTorch has them by."""
