"""SummaryWriter: values by tag and step, in files that TensorBoard shows.

    writer = SummaryWriter("runs/first")
    writer.add_scalar("loss", loss, step)
"""
import os
import socket
import time
from datetime import datetime

import numpy as np
from tensorboard.compat.proto import event_pb2
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from umbra._options import not_built
from umbra.utils.tensorboard import plugins, summary


class FileWriter:
    """The file of one folder."""

    def __init__(self, log_dir, max_queue=10, flush_secs=120, filename_suffix=""):
        self.event_writer = EventFileWriter(str(log_dir), max_queue, flush_secs, filename_suffix)

    def get_logdir(self):
        return self.event_writer.get_logdir()

    def add_event(self, event, step=None, walltime=None):
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(self, value, global_step=None, walltime=None):
        self.add_event(event_pb2.Event(summary=value), global_step, walltime)

    def flush(self):
        self.event_writer.flush()

    def close(self):
        self.event_writer.close()

    def reopen(self):
        self.event_writer.reopen()


class SummaryWriter:
    """Writes summaries to a folder: by default runs/<time>_<host><comment>."""

    def __init__(self, log_dir=None, comment="", purge_step=None, max_queue=10, flush_secs=120, filename_suffix=""):
        if not log_dir:
            log_dir = os.path.join("runs", datetime.now().strftime("%b%d_%H-%M-%S") + "_" + socket.gethostname() + comment)
        self.log_dir, self.purge_step, self.max_queue, self.flush_secs, self.filename_suffix = log_dir, purge_step, max_queue, flush_secs, filename_suffix
        self.file_writer, self.all_writers = None, None
        self.default_bins = summary.default_bins()
        self._get_file_writer()

    def _get_file_writer(self):
        if self.all_writers is None:
            self.file_writer = FileWriter(self.log_dir, self.max_queue, self.flush_secs, self.filename_suffix)
            self.all_writers = {self.file_writer.get_logdir(): self.file_writer}
            if self.purge_step is not None:
                # What an earlier run wrote from this step on does not count.
                self.file_writer.add_event(event_pb2.Event(step=self.purge_step, file_version="brain.Event:2"))
                self.file_writer.add_event(event_pb2.Event(step=self.purge_step, session_log=event_pb2.SessionLog(status=event_pb2.SessionLog.START)))
                self.purge_step = None
        return self.file_writer

    def get_logdir(self):
        """The folder."""
        return self.log_dir

    def add_scalar(self, tag, scalar_value, global_step=None, walltime=None, new_style=False, double_precision=False):
        self._get_file_writer().add_summary(summary.scalar(tag, scalar_value, new_style, double_precision), global_step, walltime)

    def add_scalars(self, main_tag, tag_scalar_dict, global_step=None, walltime=None):
        """Several numbers in one chart: each has a folder of its own."""
        self._get_file_writer()
        for tag, value in tag_scalar_dict.items():
            folder = f"{self.file_writer.get_logdir()}/{main_tag.replace('/', '_')}_{tag}"
            if folder not in self.all_writers:
                self.all_writers[folder] = FileWriter(folder, self.max_queue, self.flush_secs, self.filename_suffix)
            self.all_writers[folder].add_summary(summary.scalar(main_tag, value), global_step, walltime)

    def add_histogram(self, tag, values, global_step=None, bins="tensorflow", walltime=None, max_bins=None):
        edges = self.default_bins if isinstance(bins, str) and bins == "tensorflow" else bins
        self._get_file_writer().add_summary(summary.histogram(tag, values, edges, max_bins), global_step, walltime)

    def add_text(self, tag, text_string, global_step=None, walltime=None):
        self._get_file_writer().add_summary(summary.text(tag, text_string), global_step, walltime)

    def add_image(self, tag, img_tensor, global_step=None, walltime=None, dataformats="CHW"):
        self._get_file_writer().add_summary(summary.image(tag, img_tensor, dataformats), global_step, walltime)

    def add_images(self, tag, img_tensor, global_step=None, walltime=None, dataformats="NCHW"):
        """A batch of pictures, as one."""
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_image_with_boxes(self, tag, img_tensor, box_tensor, global_step=None, walltime=None, rescale=1, dataformats="CHW", labels=None):
        value = summary.image(tag, img_tensor, dataformats, rescale, box_tensor, [labels] if isinstance(labels, str) else labels)
        self._get_file_writer().add_summary(value, global_step, walltime)

    def add_figure(self, tag, figure, global_step=None, close=True, walltime=None):
        """A figure of Matplotlib's as a picture, or several."""
        import matplotlib.pyplot
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        figures = figure if isinstance(figure, list) else [figure]
        pictures = []
        for one in figures:
            canvas = FigureCanvasAgg(one)
            canvas.draw()
            pictures.append(np.asarray(canvas.buffer_rgba())[:, :, :3])
            if close:
                matplotlib.pyplot.close(one)
        self.add_image(tag, np.stack(pictures), global_step, walltime, dataformats="NHWC")

    def add_audio(self, tag, snd_tensor, global_step=None, sample_rate=44100, walltime=None):
        self._get_file_writer().add_summary(plugins.audio(tag, snd_tensor, sample_rate), global_step, walltime)

    def add_tensor(self, tag, tensor, global_step=None, walltime=None):
        self._get_file_writer().add_summary(plugins.tensor_proto(tag, tensor), global_step, walltime)

    def add_histogram_raw(self, tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts, global_step=None, walltime=None):
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        value = summary.histogram_raw(tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts)
        self._get_file_writer().add_summary(value, global_step, walltime)

    def add_pr_curve(self, tag, labels, predictions, global_step=None, num_thresholds=127, weights=None, walltime=None):
        self._get_file_writer().add_summary(plugins.pr_curve(tag, labels, predictions, num_thresholds, weights), global_step, walltime)

    def add_pr_curve_raw(self, tag, true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts, precision, recall,
                         global_step=None, num_thresholds=127, weights=None, walltime=None):
        value = plugins.pr_curve_raw(tag, true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts, precision,
                                     recall, num_thresholds, weights)
        self._get_file_writer().add_summary(value, global_step, walltime)

    def add_mesh(self, tag, vertices, colors=None, faces=None, config_dict=None, global_step=None, walltime=None):
        self._get_file_writer().add_summary(plugins.mesh(tag, vertices, colors, faces, config_dict), global_step, walltime)

    def add_custom_scalars(self, layout):
        self._get_file_writer().add_summary(plugins.custom_scalars(layout))

    def add_custom_scalars_multilinechart(self, tags, category="default", title="untitled"):
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(self, tags, category="default", title="untitled"):
        if len(tags) != 3:
            raise AssertionError(f"Expected 3 tags, got {len(tags)}.")
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_embedding(self, mat, metadata=None, label_img=None, global_step=None, tag="default", metadata_header=None):
        """Points for the projector, each with a label and a picture if they are given."""
        from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig

        from umbra.utils.tensorboard.embedding import add_points
        if not hasattr(self, "_projector_config"):
            self._projector_config = ProjectorConfig()
        add_points(self._get_file_writer().get_logdir(), self._projector_config, mat, metadata, label_img, global_step, tag, metadata_header)

    def add_hparams(self, hparam_dict, metric_dict, hparam_domain_discrete=None, run_name=None, global_step=None):
        """The settings of a run and what came of them, in a folder below."""
        not_built("SummaryWriter.add_hparams", hparam_domain_discrete=(hparam_domain_discrete, None))
        if not isinstance(hparam_dict, dict) or not isinstance(metric_dict, dict):
            raise TypeError("hparam_dict and metric_dict should be dictionary.")
        with SummaryWriter(os.path.join(self._get_file_writer().get_logdir(), run_name or str(time.time()))) as writer:
            for value in summary.hparams(hparam_dict, metric_dict):
                writer.file_writer.add_summary(value, global_step)
            for tag, value in metric_dict.items():
                writer.add_scalar(tag, value, global_step)

    def flush(self):
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self):
        for writer in (self.all_writers or {}).values():
            writer.flush()
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __getattr__(self, name):
        if name.startswith("add_"):
            raise NotImplementedError(f"torch.utils.tensorboard.SummaryWriter.{name} is not in Umbra yet")
        raise AttributeError(f"'SummaryWriter' object has no attribute '{name}'")
