"""Summaries: one value of one tag, as TensorBoard's files hold it."""
import numpy as np
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto

import umbra


def as_array(values):
    """The numbers of a tensor, an array or a number."""
    return values.detach().cpu().numpy() if isinstance(values, umbra.Tensor) else np.asarray(values)


def _of_plugin(name):
    return SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name=name))


def scalar(tag, value, new_style=False, double_precision=False):
    """A number; in the new style as a tensor, of doubles where they are asked for."""
    number = as_array(value).squeeze()
    if number.ndim:
        raise AssertionError("scalar should be 0D")
    if not new_style:
        return Summary(value=[Summary.Value(tag=tag, simple_value=float(number))])
    contents = {"double_val": [float(number)], "dtype": "DT_DOUBLE"} if double_precision else {"float_val": [float(number)], "dtype": "DT_FLOAT"}
    return Summary(value=[Summary.Value(tag=tag, tensor=TensorProto(**contents), metadata=_of_plugin("scalars"))])


def text(tag, value):
    """A text, in Markdown."""
    tensor = TensorProto(dtype="DT_STRING", string_val=[value.encode("utf-8")], tensor_shape=TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)]))
    return Summary(value=[Summary.Value(tag=tag + "/text_summary", tensor=tensor, metadata=_of_plugin("text"))])


def default_bins():
    """Edges that grow by a tenth, on both sides of 0."""
    positive = [1e-12 * 1.1 ** i for i in range(774)]
    return [-edge for edge in reversed(positive)] + [0.0] + positive


def histogram(tag, values, bins, max_bins=None):
    """How often values fall between edges: a list of them, or one of NumPy's rules."""
    values = as_array(values).astype(float).reshape(-1)
    if values.size == 0:
        raise ValueError("The input has no element.")
    counts, edges = np.histogram(values, bins=bins)
    if max_bins is not None and len(counts) > max_bins:
        step = len(counts) // max_bins
        counts = np.pad(counts, (0, -len(counts) % step)).reshape(-1, step).sum(1)
        edges = np.append(edges[:-1:step], edges[-1])
    filled = np.flatnonzero(counts)
    first, last = filled[0], filled[-1] + 1
    # The first bucket ends at the lower edge of the first count.
    kept = counts[first - 1:last] if first > 0 else np.concatenate([[0], counts[:last]])
    return Summary(value=[Summary.Value(tag=tag, histo=HistogramProto(
        min=values.min(), max=values.max(), num=len(values), sum=values.sum(), sum_squares=values.dot(values),
        bucket_limit=edges[first:last + 1].tolist(), bucket=kept.tolist()))])


def grid(pictures, across=8):
    """Pictures (N, C, H, W) beside and below each other, `across` in a row, as one (H, W, C)."""
    count, channels, height, width = pictures.shape
    pictures = pictures.repeat(3, 1) if channels == 1 else pictures
    columns = min(count, across)
    rows = -(-count // columns)
    filled = np.zeros((rows * columns, *pictures.shape[1:]), pictures.dtype)
    filled[:count] = pictures
    return filled.reshape(rows, columns, -1, height, width).transpose(0, 3, 1, 4, 2).reshape(rows * height, columns * width, -1)


def _picture(tensor, dataformats):
    """The bytes (H, W, C) of a picture, or of a batch of them in a grid."""
    array, dataformats = as_array(tensor), dataformats.upper()
    if array.ndim != len(dataformats):
        raise AssertionError(f"size of input tensor and input format are different. tensor shape: {array.shape}, input_format: {dataformats}")
    order = {letter: place for place, letter in enumerate(dataformats)}
    if "N" in order:
        array = grid(array.transpose([order[letter] for letter in "NCHW"]))
    else:
        array = array.transpose([order[letter] for letter in "HWC" if letter in order])
    array = array[:, :, None] if array.ndim == 2 else array
    array = array if array.dtype == np.uint8 else (array * 255.0).clip(0, 255).astype(np.uint8)
    return array.repeat(3, 2) if array.shape[2] == 1 else array


def histogram_raw(tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts):
    """A histogram that was counted elsewhere."""
    return Summary(value=[Summary.Value(tag=tag, histo=HistogramProto(
        min=min, max=max, num=num, sum=sum, sum_squares=sum_squares, bucket_limit=bucket_limits, bucket=bucket_counts))])


def image(tag, tensor, dataformats="CHW", rescale=1, boxes=None, labels=None):
    """A picture, as PNG; with red boxes (left, top, right, bottom) where they are given."""
    import io

    from PIL import Image, ImageDraw
    array = _picture(tensor, dataformats)
    picture = Image.fromarray(array)
    for i, box in enumerate([] if boxes is None else as_array(boxes).tolist()):
        draw = ImageDraw.Draw(picture)
        draw.rectangle(box, outline="Red", width=1)
        if labels is not None:
            draw.text((box[0], box[3] - 10), labels[i], fill="Red")
    if rescale != 1:
        picture = picture.resize((int(array.shape[1] * rescale), int(array.shape[0] * rescale)))
    file = io.BytesIO()
    picture.save(file, format="PNG")
    return Summary(value=[Summary.Value(tag=tag, image=Summary.Image(
        height=picture.height, width=picture.width, colorspace=array.shape[2], encoded_image_string=file.getvalue()))])


def _setting(value):
    """A setting as the plugin of settings has it, and its type."""
    from google.protobuf import struct_pb2
    from tensorboard.plugins.hparams.api_pb2 import DATA_TYPE_FLOAT64, DATA_TYPE_STRING
    if isinstance(value, str):
        return struct_pb2.Value(string_value=value), DATA_TYPE_STRING
    if isinstance(value, (int, float, umbra.Tensor)):
        return struct_pb2.Value(number_value=float(value)), DATA_TYPE_FLOAT64
    raise ValueError("value should be one of int, float, str, bool, or torch.Tensor")


def hparams(settings, metrics):
    """The settings of a run: what there is, the values at its start, and that it has ended."""
    from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2
    read = {name: _setting(value) for name, value in settings.items() if value is not None}
    experiment = api_pb2.Experiment(hparam_infos=[api_pb2.HParamInfo(name=name, type=kind) for name, (_, kind) in read.items()],
                                    metric_infos=[api_pb2.MetricInfo(name=api_pb2.MetricName(tag=tag)) for tag in metrics])
    start = plugin_data_pb2.SessionStartInfo(hparams={name: value for name, (value, _) in read.items()})
    end = plugin_data_pb2.SessionEndInfo(status=api_pb2.Status.Value("STATUS_SUCCESS"))

    def of(tag, **data):
        contents = plugin_data_pb2.HParamsPluginData(version=metadata.PLUGIN_DATA_VERSION, **data).SerializeToString(deterministic=True)
        plugin = SummaryMetadata.PluginData(plugin_name=metadata.PLUGIN_NAME, content=contents)
        return Summary(value=[Summary.Value(tag=tag, metadata=SummaryMetadata(plugin_data=plugin), tensor=metadata.NULL_TENSOR)])
    return (of(metadata.EXPERIMENT_TAG, experiment=experiment), of(metadata.SESSION_START_INFO_TAG, session_start_info=start),
            of(metadata.SESSION_END_INFO_TAG, session_end_info=end))
