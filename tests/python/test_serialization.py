"""save and load."""
import collections
import copy
import io
import pathlib
import pickle
import subprocess
import sys
import zipfile

import pytest

import umbra
from umbra import nn
from umbra._subclasses.fake_tensor import FakeTensor, FakeTensorMode


EXPECTED = pathlib.Path(__file__).parent / "expected"


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


def test_map_location():
    seen = []

    def where(storage, location):
        seen.append((type(storage).__name__, location))

    assert round_trip(umbra.ones(2), map_location="meta").device.type == "meta"
    assert round_trip(umbra.ones(2), map_location={"cpu": "meta"}).device.type == "meta"
    assert umbra.equal(round_trip(umbra.ones(2), map_location=where), umbra.ones(2)) and seen == [("UntypedStorage", "cpu")]
    with pytest.raises(TypeError, match="not callable"):
        round_trip(umbra.ones(2), map_location=3)
    with pytest.raises(RuntimeError, match="torch.cuda.is_available.. is False"):
        round_trip(umbra.ones(2), map_location="cuda")
    with pytest.raises(RuntimeError, match="don't know how to restore data location"):
        round_trip(umbra.ones(2), map_location="nowhere")
    for wrong in ({"cpu": 3}, lambda storage, location: 3):
        with pytest.raises(TypeError, match="got int"):
            round_trip(umbra.ones(2), map_location=wrong)


def test_a_failed_save_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "file.pt"
    umbra.save("before", path)
    with FakeTensorMode():
        fake = umbra.ones(2)
    for value, error, message in ((lambda: 1, AttributeError, "local object"), (fake, TypeError, "no data")):
        with pytest.raises(error, match=message):
            umbra.save([value], path)
        assert umbra.load(path) == "before"
    assert [file.name for file in tmp_path.iterdir()] == ["file.pt"]


def test_memory_has_one_type():
    x = umbra.ones(2)
    with pytest.raises(RuntimeError, match="view the same data as different types"):
        umbra.save([x, x.view(umbra.int32)], io.BytesIO())


def test_what_plain_data_can_be():
    cycle = []
    cycle.append(cycle)
    back = round_trip(cycle)
    assert back[0] is back
    value = [{1, 2}, 2**80, 1 + 2j, bytearray(b"x"), collections.Counter("aab"), umbra.strided]
    assert round_trip(value) == value
    assert round_trip(umbra.ones(2, 3, device="meta")).shape == (2, 3)


def test_whole_modules_and_their_hooks_of_state():
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.LSTM(3, 2))
    with pytest.raises(pickle.UnpicklingError, match="torch.nn.modules.container.Sequential was not an allowed global"):
        round_trip(net)
    back = round_trip(net, weights_only=False)
    x = umbra.randn(4, 2)
    assert umbra.equal(back(x)[0], net(x)[0]) and str(back) == str(net)
    assert round_trip(net.state_dict())._metadata["1"] == {"version": 2}


class Record:
    def __init__(self, n):
        self.n = n


class Tagged(umbra.Tensor):
    pass


def test_what_the_user_allows_is_loaded():
    for value, name in ((Record(5), "Record"), (umbra.ones(1).as_subclass(Tagged), "Tagged")):
        with pytest.raises(pickle.UnpicklingError, match=name):
            round_trip(value)
        with umbra.serialization.safe_globals([type(value)]):
            assert type(round_trip(value)) is type(value)
        with pytest.raises(pickle.UnpicklingError, match=name):
            round_trip(value)
        assert type(round_trip(value, weights_only=False)) is type(value)


def test_attributes_of_tensors_are_kept():
    x, p = umbra.ones(2), nn.Parameter(umbra.ones(2))
    x.note, p.note = "x", "p"
    back = round_trip([x, p])
    assert [b.note for b in back] == ["x", "p"] and type(back[1]) is nn.Parameter


def test_the_old_format_and_several_objects_in_one_file():
    x = umbra.arange(4.0)
    file = io.BytesIO()
    umbra.save({"x": x[1:], "y": x.view(2, 2)}, file, _use_new_zipfile_serialization=False)
    umbra.save([x], file, _use_new_zipfile_serialization=False)
    file.seek(0)
    first, second = umbra.load(file), umbra.load(file)
    first["x"][0] = 50
    assert first["y"].tolist() == [[0, 50], [2, 3]] and umbra.equal(second[0], x)
    with pytest.raises(EOFError):
        umbra.load(file)
    with pytest.raises(RuntimeError, match="mmap can only be used"):
        umbra.load(io.BytesIO(file.getvalue()), mmap=True)


def test_mapped_files(tmp_path):
    path = tmp_path / "file.pt"
    umbra.save({"a": umbra.arange(4.0), "b": umbra.arange(3)}, path)
    mapped = umbra.load(path, mmap=True)
    mapped["a"][0] = 100
    assert umbra.load(path)["a"][0] == 0 and mapped["b"].tolist() == [0, 1, 2]
    with umbra.serialization.set_default_mmap_options(umbra.serialization.MAP_SHARED):
        umbra.load(path, mmap=True)["a"][0] = 7
    assert umbra.load(path)["a"][0] == 7


@pytest.mark.parametrize("name", ["saved_by_torch.pt", "saved_by_torch_legacy.pt"])
@pytest.mark.parametrize("weights_only", [True, False])
def test_files_that_torch_wrote(name, weights_only):
    back = umbra.load(EXPECTED / name, weights_only=weights_only)
    back["base"][1] = 50
    assert back["view"].tolist() == [[0, 3], [50, 4], [2, 5]] and back["conj"].is_conj() and back["conj"].tolist() == [1 - 2j]
    assert type(back["parameter"]) is nn.Parameter and back["counter"] == collections.Counter("aab") and back["size"] == umbra.Size([2, 3])
    if "f8" in back:
        assert back["f8"].dtype == umbra.float8_e5m2 and back["f8"].float().tolist() == [1, 1]


def test_a_module_that_torch_wrote():
    net = umbra.load(EXPECTED / "module_saved_by_torch.pt", weights_only=False)
    assert net(umbra.tensor([[1.0, 2.0]])).tolist() == [[6.0]]


def test_plain_pickles_of_tensors():
    x = umbra.arange(6.0).view(2, 3).t()
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        back = pickle.loads(pickle.dumps(x, protocol))
        assert umbra.equal(back, x) and back.stride() == x.stride()
    with pytest.raises(TypeError, match="no data"):
        with FakeTensorMode():
            pickle.dumps(umbra.ones(2))


def archive(data, **records):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as out:
        out.writestr("archive/data.pkl", data)
        for name, contents in records.items():
            out.writestr("archive/" + name.replace("__", "/"), contents)
    file.seek(0)
    return file


def tensor_pickle(count=2, offset=0, size=(2,), stride=(1,)):
    """The pickle of a tensor over a storage of `count` floats."""
    from umbra import _checkpoint, _utils
    storage = object()

    class Saved(_checkpoint._Pickler):
        def persistent_id(self, obj):
            return ("storage", umbra.FloatStorage, "0", "cpu", count) if obj is storage else None

    class Description:
        def __reduce__(self):
            return _utils._rebuild_tensor_v2, (storage, offset, size, stride, False, collections.OrderedDict())
    file = io.BytesIO()
    Saved(file, 2).dump(Description())
    return file.getvalue()


@pytest.mark.parametrize("geometry", [{"size": (3,)}, {"offset": 1}, {"stride": (2,)}, {"stride": (-1,)}, {"offset": -1}, {"size": (-1,)},
                                      {"size": (2**62,), "stride": (0,)}, {"size": (2, 2)}, {"size": (True,)}])
def test_tensors_stay_inside_their_storage(geometry):
    assert umbra.load(archive(tensor_pickle(), data__0=bytes(8))).tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="out of bounds|not the geometry"):
        umbra.load(archive(tensor_pickle(**geometry), data__0=bytes(8)))


def test_storages_have_the_size_that_the_file_says():
    for count in (1, 3, 2**40):
        with pytest.raises(RuntimeError, match="bytes"):
            umbra.load(archive(tensor_pickle(count), data__0=bytes(8)))
    with pytest.raises(RuntimeError, match="file not found"):
        umbra.load(archive(tensor_pickle()))


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
    with pytest.raises(pickle.UnpicklingError, match="Unsupported operand"):
        umbra.load(io.BytesIO(b"not a file at all"))
    with pytest.raises(AttributeError, match="file that is seekable"):
        umbra.load(3)
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


def test_options():
    data = io.BytesIO()
    umbra.save([umbra.ones(1)], data, pickle_protocol=4, pickle_module=pickle)
    with pytest.warns(UserWarning, match="protocol 4"), pytest.raises(pickle.UnpicklingError, match="Unsupported operand 149"):
        umbra.load(io.BytesIO(data.getvalue()))
    for options in ({"weights_only": False}, {"pickle_module": pickle}):
        assert umbra.load(io.BytesIO(data.getvalue()), **options)[0] == 1
    with pytest.raises(ValueError, match="must be a file path in order to use the mmap argument"):
        umbra.load(io.BytesIO(data.getvalue()), mmap=True)
    with pytest.raises(RuntimeError, match="explicit pickle_module"):
        umbra.load(io.BytesIO(data.getvalue()), weights_only=True, pickle_module=pickle)
    with pytest.raises(TypeError):
        umbra.load(io.BytesIO(data.getvalue()), weights_only=False, unknown=1)


def old_format(value, **options):
    file = io.BytesIO()
    umbra.save(value, file, _use_new_zipfile_serialization=False)
    file.seek(0)
    return umbra.load(file, **options)


@pytest.mark.parametrize("convert", ["to_sparse", "to_sparse_csr", "to_sparse_csc", "to_sparse_bsr", "to_sparse_bsc"])
def test_sparse_tensors_in_the_old_format(convert):
    x = umbra.tensor([[0.0, 2.0], [3.0, 0.0]])
    sparse = getattr(x, convert)(*(((1, 1),) if "_bs" in convert else ()))
    back = old_format([sparse])[0]
    assert back.layout == sparse.layout and umbra.equal(back.to_dense(), x)


def test_indices_of_the_old_format_are_checked_when_they_have_been_read():
    compressed, plain = umbra.tensor([0, 1, 7]), umbra.tensor([0, 1])
    broken = umbra.ops.aten._sparse_compressed_tensor_unsafe(compressed, plain, umbra.ones(2), (2, 2), layout=umbra.sparse_csr)
    with pytest.raises(RuntimeError, match=r"crow_indices\[..., -1\] == nnz"):
        old_format(broken)


def test_storages_of_the_old_format_that_are_parts_of_another():
    head = [pickle.dumps(value, 2) for value in (umbra._checkpoint._MAGIC, 1001, {"little_endian": True})]

    class Pickler(pickle._Pickler):
        def persistent_id(self, obj):
            if isinstance(obj, tuple) and obj and obj[0] == "storage":
                return obj

        def save_global(self, obj, name=None):
            self.write(pickle.GLOBAL + b"torch\nFloatStorage\n")

    body = io.BytesIO()
    described = [("storage", umbra.FloatStorage, "7", "cpu", 3, (key, offset, count)) for key, offset, count in (("8", 0, 1), ("9", 1, 2))]
    Pickler(body, 2).dump(described)
    contents = b"\x03" + bytes(7) + umbra.tensor([1.0, 2.0, 3.0]).numpy().tobytes()
    first, second = umbra.load(io.BytesIO(b"".join([*head, body.getvalue(), pickle.dumps(["7"], 2), contents])))
    assert first.tolist() == [1.0] and second.tolist() == [2.0, 3.0] and second.data_ptr() == first.data_ptr() + 4


def test_fake_tensors_can_be_written_as_ones_whose_data_come_later():
    with FakeTensorMode():
        x = umbra.ones(2, 3)
    file = io.BytesIO()
    with umbra.serialization.skip_data(materialize_fake_tensors=True):
        umbra.save([x, x[1]], file)
    file.seek(0)
    whole, row = umbra.load(file)
    assert type(whole) is umbra.Tensor and whole.tolist() == [[0.0] * 3] * 2
    row += 1
    assert whole[1].tolist() == [1.0] * 3


class OnlyReads:
    """A file with the least that reading takes."""

    def __init__(self, data):
        file = io.BytesIO(data)
        self.read, self.readline, self.seek, self.tell = file.read, file.readline, file.seek, file.tell


def test_files_that_only_read_and_seek():
    x, file = umbra.arange(5.0), io.BytesIO()
    umbra.save(x, file)
    assert umbra.equal(umbra.load(OnlyReads(file.getvalue())), x)


# ---- copies ----

class WithSlots(umbra.Tensor):
    __slots__ = ["note"]

    def new_empty(self, *sizes):  # what deep copies ask for
        return umbra.empty(*sizes).as_subclass(WithSlots)


class WithState(umbra.Tensor):
    def __getstate__(self):
        return "kept", dict(self.__dict__)

    def __setstate__(self, state):
        self.how = state[0]
        self.__dict__.update(state[1])


def test_slots_and_states_of_tensor_classes_are_copied():
    x = WithSlots(umbra.ones(2))
    x.note, x.other = [1], [2]
    for copied in (copy.copy(x), copy.deepcopy(x)):
        assert type(copied) is WithSlots and (copied.note, copied.other) == ([1], [2])
    assert copy.deepcopy(x).note is not x.note
    y = WithState(umbra.ones(2))
    y.label = "y"
    assert copy.copy(y).__dict__ == {"how": "kept", "label": "y"}


def test_a_deep_copy_of_a_parameter_is_the_parameter_alone():
    p = nn.Parameter(umbra.ones(2))
    p.label, p.grad = "p", umbra.ones(2)
    copied = copy.deepcopy(p)
    assert type(copied) is nn.Parameter and copied.grad is None and copied.__dict__ == {} and copy.copy(p).label == "p"


class Note:
    pass


def test_names_in_a_file_that_would_be_refused():
    file = io.BytesIO()
    umbra.save([umbra.ones(1), collections.OrderedDict(a=Note()), Note()], file)
    file.seek(0)
    name = f"{Note.__module__}.Note"
    assert umbra.serialization.get_unsafe_globals_in_checkpoint(file) == [name]
    file.seek(0)
    with umbra.serialization.safe_globals([Note]):
        assert umbra.serialization.get_unsafe_globals_in_checkpoint(file) == []
    with pytest.raises(ValueError, match="Expected input to be a checkpoint returned by torch.save"):
        umbra.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(b"text"))


def test_a_target_that_cannot_tell_where_it_stands_gets_the_file_whole():
    class Sender:
        def __init__(self):
            self.parts, self.sent = [], None

        def write(self, data):
            self.parts.append(bytes(data))

        def flush(self):
            self.sent = b"".join(self.parts)

        def tell(self):
            raise NotImplementedError

        seek = tell

    sender = Sender()
    umbra.save({"a": umbra.arange(3)}, sender)
    assert umbra.load(io.BytesIO(sender.sent))["a"].tolist() == [0, 1, 2]


def test_a_result_with_names_is_saved_by_a_program_that_never_asked_for_its_class():
    code = "import io, umbra; file = io.BytesIO(); umbra.save(umbra.ones(3, 2).max(0), file); file.seek(0); print(umbra.load(file, weights_only=False).indices.tolist())"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[0, 0]\n"


def test_of_two_archives_in_one_file_the_second_is_not_taken_for_the_first():
    file = io.BytesIO()
    umbra.save(1, file)
    second = file.tell()
    umbra.save(umbra.ones(3), file)
    file.seek(0)
    with pytest.raises(RuntimeError, match="failed reading zip archive"):
        umbra.load(file)
    file.seek(second)
    assert umbra.load(file).tolist() == [1, 1, 1]
