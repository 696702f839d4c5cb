"""Logs for TensorBoard, whose package writes the files."""
from tensorboard.summary.writer.record_writer import RecordWriter  # noqa: F401

from umbra.utils.tensorboard.writer import FileWriter, SummaryWriter  # noqa: F401
