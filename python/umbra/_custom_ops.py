"""The older names of torch.library's functions for operators of one's own."""
from umbra.library import get_ctx, impl_abstract, infer_schema  # noqa: F401
