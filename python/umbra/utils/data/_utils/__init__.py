"""What a DataLoader is made of: batches from samples, and the processes that read them."""
import atexit
import importlib.util
import sys

IS_WINDOWS = sys.platform == "win32"
MP_STATUS_CHECK_INTERVAL = 5.0  # seconds between looks whether the other side still lives
HAS_NUMPY = importlib.util.find_spec("numpy") is not None
python_exit_status = False  # whether the interpreter is on its way out


def _set_python_exit_flag():
    global python_exit_status
    python_exit_status = True


atexit.register(_set_python_exit_flag)

from umbra.utils.data._utils import collate, fetch, pin_memory, signal_handling, worker  # noqa: E402, F401
