"""Names of torch._C that other packages ask for and that are written in Python."""
from umbra import _C
from umbra._C import Tensor

_C._TensorMeta = type(Tensor)
_C._log_api_usage_once = lambda event: None  # nothing is reported to anybody
_C._current_graph_task_id = lambda: _C._backward_pass() or -1
_C._are_functorch_transforms_active = lambda: _C._level_count() > 0
