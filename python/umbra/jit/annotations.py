"""Types of annotations in scripted code."""
from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: F401

from umbra._jit_internal import BroadcastingList1, BroadcastingList2, BroadcastingList3  # noqa: F401
