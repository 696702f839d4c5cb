"""Names that files of nested tensors have."""
