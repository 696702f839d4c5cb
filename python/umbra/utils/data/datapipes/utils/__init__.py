"""What pipes are written with."""
