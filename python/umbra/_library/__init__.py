"""What `umbra.library` is made of."""
