"""What torch.compile makes: nothing here."""
from umbra._dynamo import OptimizedModule  # noqa: F401
