"""Summaries for TensorBoard beyond numbers: pictures, curves, meshes, points. They are read by TensorBoard itself."""
import pytest

import umbra as torch

pytest.importorskip("tensorboard")
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # noqa: E402

from umbra.utils.tensorboard import SummaryWriter  # noqa: E402


def written(folder, write):
    with SummaryWriter(folder) as writer:
        write(writer)
    return EventAccumulator(str(folder)).Reload()


def values_of(events, tag):
    from tensorboard.util.tensor_util import make_ndarray
    return make_ndarray(events.Tensors(tag)[0].tensor_proto)


def test_a_batch_of_pictures_is_a_grid_of_eight_in_a_row(tmp_path):
    pytest.importorskip("PIL")
    events = written(tmp_path, lambda w: w.add_images("grid", torch.rand(9, 1, 4, 5)))
    picture = events.Images("grid")[0]
    assert (picture.width, picture.height) == (40, 8)


def test_a_curve_of_precision_and_recall_has_counts_at_each_threshold(tmp_path):
    labels, predictions = torch.tensor([1, 0, 1, 1]), torch.tensor([0.9, 0.6, 0.4, 0.1])
    events = written(tmp_path, lambda w: w.add_pr_curve("curve", labels, predictions, num_thresholds=3))
    right, wrong, refused, missed, precision, recall = values_of(events, "curve").tolist()
    assert (right, wrong, refused, missed) == ([3, 1, 0], [1, 1, 0], [0, 0, 1], [0, 2, 3])
    assert precision[:2] == [0.75, 0.5] and recall[0] == 1 and recall[1] == pytest.approx(1 / 3)


def test_a_mesh_is_vertices_faces_and_colours(tmp_path):
    events = written(tmp_path, lambda w: w.add_mesh("m", torch.rand(1, 4, 3), faces=torch.zeros(1, 2, 3, dtype=torch.int64)))
    assert sorted(events.Tags()["tensors"]) == ["m_FACE", "m_VERTEX"] and values_of(events, "m_VERTEX").shape == (1, 4, 3)


def test_points_for_the_projector_are_files(tmp_path):
    written(tmp_path, lambda w: (w.add_embedding(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), metadata=["a", "b"], tag="p", global_step=3),
                                 w.add_embedding(torch.ones(1, 2))))
    assert (tmp_path / "00003/p/tensors.tsv").read_text() == "1.0\t2.0\n3.0\t4.0\n" and (tmp_path / "00003/p/metadata.tsv").read_text() == "a\nb\n"
    assert (tmp_path / "projector_config.pbtxt").read_text().count("embeddings {") == 2


def test_tensors_sounds_and_charts(tmp_path):
    events = written(tmp_path, lambda w: (w.add_tensor("t", torch.arange(3)), w.add_audio("s", torch.zeros(1, 8), sample_rate=8000),
                                          w.add_custom_scalars({"c": {"x": ["Margin", ["a", "b", "c"]]}})))
    assert values_of(events, "t").tolist() == [0, 1, 2]
    assert (events.Audio("s")[0].sample_rate, events.Audio("s")[0].length_frames) == (8000, 8)
    assert b"Margin" not in events.Tensors("custom_scalars__config__")[0].tensor_proto.string_val[0]
