"""Points for TensorBoard's projector: files of their own beside those of events, and a list of them."""
import os
import re

import numpy as np

from umbra.utils.tensorboard.summary import as_array, grid


def _lines(rows):
    return "".join("\t".join(str(entry) for entry in row) + "\n" for row in rows)


def _write(folder, name, text):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write(text)


def write_points(folder, mat, metadata=None, label_img=None, metadata_header=None):
    """The points, and the labels and pictures that belong to them."""
    points = as_array(mat)
    if points.ndim != 2:
        raise AssertionError("mat should be 2D, where mat.size(0) is the number of data points")
    os.makedirs(folder, exist_ok=True)
    if metadata is not None:
        if len(points) != len(metadata):
            raise AssertionError("#labels should equal with #data points")
        rows = [[entry] for entry in metadata] if not metadata_header else [metadata_header, *metadata]
        _write(folder, "metadata.tsv", _lines(rows))
    if label_img is not None:
        if len(points) != label_img.shape[0]:
            raise AssertionError("#images should equal with #data points")
        _write_sprite(folder, as_array(label_img))
    _write(folder, "tensors.tsv", _lines(points.tolist()))


def _write_sprite(folder, pictures):
    """One square picture of all the small ones."""
    from PIL import Image
    if pictures.shape[2] != pictures.shape[3]:
        raise AssertionError("Image should be square, see tensorflow/tensorboard#670")
    across = int(np.ceil(len(pictures) ** 0.5))
    filled = np.zeros((across * across, *pictures.shape[1:]), pictures.dtype)
    filled[:len(pictures)] = pictures
    array = grid(filled, across)
    array = array if array.dtype == np.uint8 else (array * 255).clip(0, 255).astype(np.uint8)
    Image.fromarray(array).save(os.path.join(folder, "sprite.png"))


def _tag_of(step, tag):
    """A folder's name from any tag."""
    return f"{step:05d}" if step is not None else "00000", re.sub(r"[^\w.-]", lambda c: "%%%02x" % ord(c.group()), tag)


def add_points(log_dir, known, mat, metadata, label_img, global_step, tag, metadata_header):
    """Writes the points below `log_dir`, and the list `known` with them added."""
    from google.protobuf import text_format
    from tensorboard.plugins.projector.projector_config_pb2 import EmbeddingInfo
    step, name = _tag_of(global_step, tag)
    place = f"{step}/{name}"
    write_points(os.path.join(log_dir, step, name), mat, metadata, label_img, metadata_header)
    info = EmbeddingInfo(tensor_name=f"{tag}:{step}", tensor_path=f"{place}/tensors.tsv")
    if metadata is not None:
        info.metadata_path = f"{place}/metadata.tsv"
    if label_img is not None:
        info.sprite.image_path = f"{place}/sprite.png"
        info.sprite.single_image_dim.extend([label_img.shape[3], label_img.shape[2]])
    known.embeddings.extend([info])
    _write(log_dir, "projector_config.pbtxt", text_format.MessageToString(known))
