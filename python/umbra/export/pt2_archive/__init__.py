"""Files of exported programs."""
