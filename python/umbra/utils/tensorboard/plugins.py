"""Summaries that a plugin of TensorBoard shows: curves of precision and recall, meshes, layouts of charts, tensors."""
import json

import numpy as np
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto

from umbra.utils.tensorboard.summary import as_array


def _value(tag, tensor, plugin, content=b""):
    data = SummaryMetadata.PluginData(plugin_name=plugin, content=content)
    return Summary.Value(tag=tag, tensor=tensor, metadata=SummaryMetadata(plugin_data=data))


def _tensor(array):
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=n) for n in array.shape])
    return TensorProto(dtype="DT_FLOAT", float_val=array.reshape(-1).tolist(), tensor_shape=shape)


# ---- precision and recall ----

def pr_curve_raw(tag, tp, fp, tn, fn, precision, recall, num_thresholds=127, weights=None):
    """The counts at each threshold, with the precision and the recall that follow from them."""
    from tensorboard.plugins.pr_curve.plugin_data_pb2 import PrCurvePluginData
    rows = np.stack([np.asarray(as_array(row)) for row in (tp, fp, tn, fn, precision, recall)])
    content = PrCurvePluginData(version=0, num_thresholds=min(num_thresholds, 127)).SerializeToString()
    return Summary(value=[_value(tag, _tensor(rows), "pr_curves", content)])


def pr_curve(tag, labels, predictions, num_thresholds=127, weights=None):
    """How precision and recall of predictions between 0 and 1 follow the threshold."""
    num_thresholds = min(num_thresholds, 127)
    labels, predictions = as_array(labels), as_array(predictions)
    weights = 1.0 if weights is None else as_array(weights)
    places = np.int32(np.floor(predictions * (num_thresholds - 1)))
    # Counted at the highest threshold that a prediction passes, summed from above.
    counts = [np.histogram(places, bins=num_thresholds, range=(0, num_thresholds - 1), weights=kind.astype(float) * weights)[0]
              for kind in (labels, 1 - labels)]
    tp, fp = (np.cumsum(count[::-1])[::-1] for count in counts)
    tn, fn = fp[0] - fp, tp[0] - tp
    precision, recall = tp / np.maximum(1e-7, tp + fp), tp / np.maximum(1e-7, tp + fn)
    return pr_curve_raw(tag, tp, fp, tn, fn, precision, recall, num_thresholds)


# ---- charts of several tags ----

def custom_scalars(layout):
    """Charts by category and title: `["Multiline", tags]`, or `["Margin", [value, lower, upper]]`."""
    from tensorboard.plugins.custom_scalar import layout_pb2

    def chart(title, kind, tags):
        if kind == "Margin":
            if len(tags) != 3:
                raise AssertionError(f"expected 3 tags, got {len(tags)}")
            value, lower, upper = tags
            series = layout_pb2.MarginChartContent.Series(value=value, lower=lower, upper=upper)
            return layout_pb2.Chart(title=title, margin=layout_pb2.MarginChartContent(series=[series]))
        return layout_pb2.Chart(title=title, multiline=layout_pb2.MultilineChartContent(tag=tags))

    categories = [layout_pb2.Category(title=name, chart=[chart(title, *contents) for title, contents in charts.items()])
                  for name, charts in layout.items()]
    text = layout_pb2.Layout(category=categories).SerializeToString()
    tensor = TensorProto(dtype="DT_STRING", string_val=[text], tensor_shape=TensorShapeProto())
    return Summary(value=[_value("custom_scalars__config__", tensor, "custom_scalars")])


# ---- meshes, tensors, sounds ----

def mesh(tag, vertices, colors=None, faces=None, config_dict=None):
    """Points in space, with the triangles between them and their colours where they are given."""
    from tensorboard.plugins.mesh import metadata
    from tensorboard.plugins.mesh.plugin_data_pb2 import MeshPluginData
    kinds = [(vertices, MeshPluginData.VERTEX), (faces, MeshPluginData.FACE), (colors, MeshPluginData.COLOR)]
    given = [(as_array(contents), kind) for contents, kind in kinds if contents is not None]
    components = metadata.get_components_bitmask([kind for _, kind in given])
    configuration = json.dumps(config_dict or {}, sort_keys=True)
    values = []
    for array, kind in given:
        content = MeshPluginData(version=metadata.get_current_version(), name=tag, content_type=kind, components=components, shape=array.shape,
                                 json_config=configuration).SerializeToString()
        values.append(_value(metadata.get_instance_name(tag, kind), _tensor(array), metadata.PLUGIN_NAME, content))
    return Summary(value=values)


_TYPES = {np.dtype("float16"): "DT_HALF", np.dtype("float32"): "DT_FLOAT", np.dtype("float64"): "DT_DOUBLE", np.dtype("int8"): "DT_INT8",
          np.dtype("uint8"): "DT_UINT8", np.dtype("int16"): "DT_INT16", np.dtype("int32"): "DT_INT32", np.dtype("int64"): "DT_INT64",
          np.dtype("bool"): "DT_BOOL", np.dtype("complex64"): "DT_COMPLEX64", np.dtype("complex128"): "DT_COMPLEX128"}


def tensor_proto(tag, tensor):
    """All of a tensor's numbers."""
    from tensorboard.util.tensor_util import make_tensor_proto
    array = as_array(tensor)
    if array.dtype not in _TYPES:
        raise ValueError(f"{tag} has unsupported tensor dtype {tensor.dtype}")
    return Summary(value=[_value(tag, make_tensor_proto(array), "tensor")])


def audio(tag, tensor, sample_rate=44100):
    """A sound of one channel: numbers between -1 and 1, as WAV."""
    import io
    import wave
    array = as_array(tensor)
    if abs(array).max() > 1:
        array = array.clip(-1, 1)
    if array.ndim == 1:
        array = array[None]
    if array.ndim != 2 or array.shape[0] != 1:
        raise AssertionError("input tensor should be 2 dimensional (1, L)")
    samples = (array[0] * (2**15 - 1)).astype("<i2")
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(sample_rate)
        out.writeframes(samples.tobytes())
    return Summary(value=[Summary.Value(tag=tag, audio=Summary.Audio(
        sample_rate=sample_rate, num_channels=1, length_frames=samples.size, encoded_audio_string=file.getvalue(), content_type="audio/wav"))])
