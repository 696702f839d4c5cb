"""What torch.compile makes: nothing here."""
from umbra._dynamo import OptimizedModule, is_dynamo_supported  # noqa: F401
