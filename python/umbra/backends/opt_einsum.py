"""opt_einsum, which would choose the order of products, is not used: einsum goes from left to right."""
enabled = False
strategy = None


def is_available():
    return False


def get_opt_einsum():
    return None
