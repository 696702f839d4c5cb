"""Switches of how PyTorch's export reads code. Umbra runs the code: they can be set and have no effect."""
from umbra._config_patch import patcher

use_new_tracer_experimental = True
use_legacy_dynamo_graph_capture = True

patch = patcher(__name__)
