"""save and load."""
import collections
import io
import pickle
import zipfile

import pytest

import umbra
from umbra import nn
from umbra._subclasses.fake_tensor import FakeTensor, FakeTensorMode


def round_trip(value, **options):
    file = io.BytesIO()
    umbra.save(value, file)
    file.seek(0)
    return umbra.load(file, **options)


def test_containers_come_back_as_they_were():
    value = {"list": [1, -2.5, None, True, "text", b"\x00\xff"], "tuple": (), 3: umbra.Size([2, 3]), "dtype": umbra.bfloat16,
             "device": umbra.device("cpu"), "ordered": collections.OrderedDict(b=1, a=2)}
    back = round_trip(value)
    assert back == value
    assert [type(v) for v in back.values()] == [type(v) for v in value.values()]
    assert list(back["ordered"]) == ["b", "a"]


def test_tensors_keep_memory_geometry_and_gradients():
    base = umbra.arange(12.0)
    back = round_trip({"base": base, "view": base.reshape(3, 4).t()[1:], "leaf": umbra.ones(2, requires_grad=True),
                       "parameter": nn.Parameter(umbra.ones(2), requires_grad=False)})
    assert umbra.equal(back["base"], base)
    assert back["view"].stride() == (1, 4) and back["view"].storage_offset() == 1
    back["base"].zero_()
    assert back["view"].sum() == 0
    assert back["leaf"].requires_grad and type(back["leaf"]) is umbra.Tensor
    assert type(back["parameter"]) is nn.Parameter and not back["parameter"].requires_grad


def test_one_object_stays_one():
    shared = [umbra.ones(1)]
    back = round_trip([shared, shared, shared[0]])
    assert back[0] is back[1] and back[0][0] is back[2]


def test_state_dicts(tmp_path):
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    optimizer = umbra.optim.AdamW(net.parameters())
    net(umbra.randn(5, 3)).square().sum().backward()
    optimizer.step()
    umbra.save({"net": net.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "checkpoint.pt")
    back = umbra.load(tmp_path / "checkpoint.pt", map_location="cpu")
    other = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    other.load_state_dict(back["net"])
    assert all(umbra.equal(a, b) for a, b in zip(net.state_dict().values(), other.state_dict().values()))
    umbra.optim.AdamW(other.parameters()).load_state_dict(back["optimizer"])


def test_loaded_under_a_fake_mode_tensors_are_fake():
    with FakeTensorMode():
        back = round_trip_of_ones()
        assert type(back) is FakeTensor and back.shape == (2, 3)


def round_trip_of_ones():
    from umbra._subclasses.fake_tensor import unset_fake_temporarily
    file = io.BytesIO()
    with unset_fake_temporarily():
        umbra.save(umbra.ones(2, 3), file)
    file.seek(0)
    return umbra.load(file)


def test_map_location_to_meta():
    assert round_trip(umbra.ones(2), map_location="meta").device.type == "meta"
    with pytest.raises(TypeError, match="map_location"):
        round_trip(umbra.ones(2), map_location=3)


@pytest.mark.parametrize("value, error, message", [
    (nn.Linear(1, 1), TypeError, "state_dict"),
    ({1, 2}, TypeError, "'set'"),
    (2**70, ValueError, "64 bits"),
    (umbra.ones(2, device="meta"), ValueError, "no data"),
])
def test_what_cannot_be_saved(tmp_path, value, error, message):
    path = tmp_path / "file.pt"
    umbra.save("before", path)
    with pytest.raises(error, match=message):
        umbra.save([value], path)
    assert umbra.load(path) == "before"


def test_cycles_are_refused():
    cycle = []
    cycle.append(cycle)
    with pytest.raises(ValueError, match="contains itself"):
        umbra.save(cycle, io.BytesIO())


class Attack:
    def __reduce__(self):
        return print, ("this must not run",)


def test_nothing_in_a_file_runs(capsys):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(Attack(), 2))
        archive.writestr("archive/version", "3\n")
    with pytest.raises(pickle.UnpicklingError, match="print"):
        umbra.load(io.BytesIO(file.getvalue()))
    assert capsys.readouterr().out == ""


def test_files_that_are_none(tmp_path):
    with pytest.raises(FileNotFoundError):
        umbra.load(tmp_path / "missing.pt")
    with pytest.raises(pickle.UnpicklingError, match="not a file of torch.save"):
        umbra.load(io.BytesIO(b"hello"))
    with pytest.raises(EOFError):
        umbra.load(io.BytesIO(b""))
    whole = io.BytesIO()
    umbra.save(umbra.arange(100.), whole)
    with pytest.raises(RuntimeError):
        umbra.load(io.BytesIO(whole.getvalue()[:200]))
    with pytest.raises(RuntimeError, match="Parent directory .* does not exist"):
        umbra.save(1, tmp_path / "missing" / "file.pt")
    with pytest.raises(AttributeError, match="Can't pickle local object"):
        umbra.save([lambda: 1], io.BytesIO())


def test_options_that_are_not_built_are_refused(tmp_path):
    data = io.BytesIO()
    umbra.save(1, data)
    for options in ({"pickle_protocol": 4}, {"_use_new_zipfile_serialization": False}, {"pickle_module": io}):
        with pytest.raises(NotImplementedError):
            umbra.save(1, io.BytesIO(), **options)
    with pytest.raises(ValueError, match="must be a file path in order to use the mmap argument"):
        umbra.load(io.BytesIO(data.getvalue()), mmap=True)
    with pytest.raises(RuntimeError, match="explicit pickle_module"):
        umbra.load(io.BytesIO(data.getvalue()), pickle_module=pickle)
    with pytest.raises(TypeError):
        umbra.load(io.BytesIO(data.getvalue()), unknown=1)
