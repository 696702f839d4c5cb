"""What makes batches of samples."""
from umbra.utils.data._utils.worker import _DatasetKind, _Fetcher  # noqa: F401
