"""Pipes of torch.utils.data: datasets that are made of one another, and loaders that read them. Values that no rule gives are PyTorch's."""
import functools
import pickle
import warnings

import pytest

import umbra as torch
from umbra.utils.data import (DataChunk, DataLoader, IterDataPipe, MapDataPipe, argument_validation, functional_datapipe, guaranteed_datapipes_determinism,
                              non_deterministic)
from umbra.utils.data.datapipes.iter import (
    Batcher, FileLister, FileOpener, Forker, IterableWrapper, Mapper, Sampler, StreamReader, Zipper)
from umbra.utils.data.datapipes.iter.sharding import SHARDING_PRIORITIES
from umbra.utils.data.datapipes.map import SequenceWrapper
from umbra.utils.data.datapipes.utils.common import StreamWrapper
from umbra.utils.data.datapipes.utils.decoder import Decoder, basichandlers, handle_extension
from umbra.utils.data.datapipes.utils.snapshot import _simple_graph_snapshot_restoration
from umbra.utils.data.graph import traverse_dps
from umbra.utils.data.graph_settings import apply_random_seed, apply_sharding, apply_shuffle_settings, get_all_graph_pipes


def even(x):
    return x % 2 == 0


def add(x, y):
    return x + y


def third(x):
    return x % 3


def numbers(n=10):
    return IterableWrapper(range(n))


class Stream(IterDataPipe):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return iter(range(self.n))


class Failing(IterDataPipe):
    def __init__(self, x):
        self.x = x

    def __iter__(self):
        yield 1
        raise ValueError("boom")


def test_steps_of_streams():
    assert list(numbers(5).map(abs).filter(even)) == [0, 2, 4]
    assert list(numbers(5).batch(2)) == [[0, 1], [2, 3], [4]] and list(numbers(5).batch(2, drop_last=True)) == [[0, 1], [2, 3]]
    assert len(numbers(5).batch(2)) == 3 and len(numbers(5).batch(2, drop_last=True)) == 2
    assert list(numbers(3).concat(numbers(2))) == [0, 1, 2, 0, 1] and len(numbers(3).concat(numbers(2))) == 5
    assert list(numbers(3).zip(numbers(2))) == [(0, 0), (1, 1)] and len(numbers(3).zip(numbers(2))) == 2
    assert list(numbers(3).mux(numbers(2))) == [0, 0, 1, 1] and len(numbers(3).mux(numbers(2))) == 4
    assert list(IterableWrapper([[0, [1]], [2]]).unbatch(-1)) == [0, 1, 2] and list(IterableWrapper([[0, [1]], [2]]).unbatch()) == [0, [1], 2]
    assert list(Sampler(numbers(3))) == [0, 1, 2]
    assert [x.tolist() for x in numbers(4).batch(2).collate()] == [[0, 1], [2, 3]]
    assert isinstance(numbers(3).batch(3), Batcher) and isinstance(numbers(3).map(abs), Mapper)
    chunk = next(iter(numbers(3).batch(2)))
    assert isinstance(chunk, DataChunk) and chunk.as_str(" ") == " [0, 1]" and list(chunk.raw_iterator()) == [0, 1]


def test_columns():
    rows = IterableWrapper([(1, 2, 3), (4, 5, 6)])
    assert list(rows.map(add, input_col=[0, 2])) == [(4, 2), (10, 5)]
    assert list(rows.map(add, input_col=[0, 2], output_col=-1)) == [(1, 2, 3, 4), (4, 5, 6, 10)]
    assert list(rows.map(abs, input_col=1, output_col=0)) == [(2, 2, 3), (5, 5, 6)]
    assert list(IterableWrapper([{"a": 1, "b": 2}]).map(add, input_col=("a", "b"), output_col="c")) == [{"a": 1, "b": 2, "c": 3}]
    assert list(rows.filter(even, input_col=1)) == [(1, 2, 3)]
    with pytest.raises(ValueError, match="`output_col` must be None when `input_col` is None."):
        rows.map(abs, output_col=1)
    with pytest.raises(ValueError, match="The function add takes 2 positional parameters, but 1 are required."):
        rows.map(add)
    with pytest.raises(ValueError, match="The function even takes 1 parameters, but 2 are required."):
        rows.map(even, input_col=[0, 1])
    with pytest.raises(ValueError, match="Boolean output is required"):
        list(numbers(3).filter(abs))
    with pytest.raises(TypeError, match="A callable function is expected, but <class 'int'> is provided."):
        numbers(3).map(5)


def test_groups():
    assert list(numbers(7).groupby(third)) == [[0, 3, 6], [1, 4], [2, 5]]
    assert list(numbers(7).groupby(third, group_size=2, keep_key=True)) == [(0, [0, 3]), (1, [1, 4]), (2, [2, 5]), (0, [6])]
    assert list(numbers(7).groupby(third, buffer_size=4)) == [[0, 3], [1, 4], [2, 5], [6]]
    with pytest.raises(RuntimeError, match="Failed to group items"):
        list(numbers(7).groupby(third, buffer_size=3, group_size=3))
    assert list(numbers(7).groupby(third, buffer_size=3, group_size=3, drop_remaining=True)) == [[5], [6]]
    assert list(numbers(7).groupby(third, buffer_size=4, keep_key=True)) == [(0, [0, 3]), (2, [1, 4]), (2, [2, 5]), (0, [6])]  # keys as in torch
    with pytest.raises(AssertionError, match="group_size must be > 0"):
        numbers(7).groupby(third, buffer_size=3, group_size=4)


def test_shuffling_has_a_seed_for_each_pass():
    assert list(numbers().shuffle().set_seed(3)) == [3, 9, 2, 4, 7, 6, 0, 8, 1, 5]
    assert list(numbers().shuffle(buffer_size=3).set_seed(3)) == [0, 2, 4, 3, 1, 5, 7, 8, 6, 9]
    assert list(SequenceWrapper(range(6)).shuffle().set_seed(3)) == [0, 2, 3, 5, 4, 1]
    pipe = numbers().shuffle()
    torch.manual_seed(5)
    first, second = list(pipe), list(pipe)
    assert first != second and sorted(first) == sorted(second) == list(range(10))
    torch.manual_seed(5)
    assert list(pipe) == first and list(pipe.set_shuffle(False)) == list(range(10))
    half = numbers().shuffle().set_seed(1)
    iterator = iter(half)
    next(iterator)
    assert len(pickle.loads(pickle.dumps(half))._buffer) == 9  # what waits goes with it


def test_forks_read_at_their_own_pace():
    left, right = numbers(5).fork(2, buffer_size=2)
    assert list(zip(left, right)) == [(i, i) for i in range(5)] and len(left) == 5
    left, right = numbers(5).fork(2, buffer_size=2)
    with pytest.raises(BufferError, match="ForkerIterDataPipe buffer overflow,buffer size 2 is insufficient."):
        list(left)
    source = numbers(2)
    assert source.fork(1) is source and all(not isinstance(pipe, Forker) for pipe in source.fork(2))
    cells = [[1], [2]]
    same, other = IterableWrapper(cells, deepcopy=False).fork(2, copy="shallow")
    assert list(same) == list(other) == cells and next(iter(same)) is not cells[0]
    with pytest.raises(ValueError, match="Unknown copy method `odd` requested"):
        source.fork(2, copy="odd")
    with pytest.raises(ValueError, match="Expected `num_instances` larger than 0, but 0 is found"):
        source.fork(0)
    with pytest.warns(UserWarning, match="Unlimited buffer size is set for `fork`"):
        source.fork(2, buffer_size=-1)


def test_a_new_pass_of_one_fork_begins_all_of_them():
    left, right = numbers(4).fork(2)
    reader, other = iter(left), iter(right)
    assert [next(reader), next(reader), next(other)] == [0, 1, 0]
    with pytest.warns(UserWarning, match="Some child DataPipes are not exhausted"):
        again = iter(left)
    assert next(again) == 0
    with pytest.raises(RuntimeError, match="a new iterator has been created from one of the ChildDataPipes of _ForkerIterDataPipe"):
        next(other)
    del reader, other  # the end of the pass before takes nothing from this one
    assert list(again) == [1, 2, 3] and list(right) == [0, 1, 2, 3]


def test_demux_sends_samples():
    evens, odds = numbers(6).demux(2, third_or_none, drop_none=True)
    assert list(evens) == [0, 3] and list(odds) == [1, 4]
    with pytest.raises(ValueError, match="Output of the classification fn should be between 0 and 1. 2 is returned."):
        list(numbers(6).demux(2, third)[0])
    with pytest.raises(BufferError, match="DemultiplexerIterDataPipe buffer overflow, buffer size 1 is insufficient."):
        list(numbers(9).demux(3, third, buffer_size=1)[0])
    with pytest.raises(TypeError):
        len(evens)


def third_or_none(x):
    return None if x % 3 == 2 else x % 3


def test_one_iterator_at_a_time():
    pipe = numbers(3)
    first, second = iter(pipe), iter(pipe)
    assert next(first) == 0 and next(second) == 0 and pipe._number_of_samples_yielded == 1
    with pytest.raises(RuntimeError, match=r"another iterator has been created from the same IterDataPipe: IterableWrapperIterDataPipe\(deepcopy=True"):
        next(first)
    stream = Stream(3)
    first, second = iter(stream), iter(stream)
    assert next(second) == 0
    with pytest.raises(RuntimeError, match=r"from the same IterDataPipe: Stream\(n=3\)\n"):
        next(first)
    with pytest.raises(ValueError) as caught:
        list(Failing(5).map(abs))
    assert str(caught.value) == "boom\nThis exception is thrown by __iter__ of Failing(x=5)"


def test_names_and_registration():
    assert repr(numbers()) == str(numbers()) == "IterableWrapperIterDataPipe"
    with pytest.raises(AttributeError, match="'IterableWrapperIterDataPipe' object has no attribute 'nothing"):
        numbers().nothing
    with pytest.raises(Exception, match="Unable to add DataPipe function name map as it is already taken"):
        functional_datapipe("map")(Stream)
    assert "shuffle" in dir(numbers()) and sorted(MapDataPipe.functions) == ["batch", "concat", "map", "shuffle", "zip"]
    try:
        @functional_datapipe("_doubled")
        class Doubler(IterDataPipe):
            """Twice each."""

            def __init__(self, source, times=2):
                self.source, self.times = source, times

            def __iter__(self):
                for x in self.source:
                    yield x * self.times
        assert list(numbers(3)._doubled()) == [0, 2, 4] and list(numbers(3)._doubled(times=3)) == [0, 3, 6]
        assert numbers(3)._doubled.__doc__ == "Twice each."
    finally:
        IterDataPipe.functions.pop("_doubled", None)


def test_what_is_not_deterministic_can_be_kept_out():
    @non_deterministic
    class Any(IterDataPipe):
        def __iter__(self):
            yield 1
    assert list(Any()) == [1]
    with guaranteed_datapipes_determinism():
        with pytest.raises(TypeError, match="Any is non-deterministic, but you set 'guaranteed_datapipes_determinism'"):
            Any()
    with pytest.raises(TypeError, match="Only `IterDataPipe` can be decorated with `non_deterministic`, but int is found"):
        non_deterministic(int)

    @argument_validation
    def takes(pipe: IterDataPipe):
        return list(pipe)
    assert takes(numbers(2)) == [0, 1]
    with pytest.raises(TypeError, match="Expected argument 'pipe' as an IterDataPipe, but found <class 'list'>"):
        takes([1])


def shape(graph):
    return {type(pipe).__name__: shape(below) for pipe, below in graph.values()}


def test_graphs():
    left, right = numbers().fork(2)
    source = {"_ChildDataPipe": {"_ForkerIterDataPipe": {"IterableWrapperIterDataPipe": {}}}}
    pipe = left.zip(right.map(abs)).shuffle()
    assert shape(traverse_dps(pipe)) == {"ShufflerIterDataPipe": {"ZipperIterDataPipe": {**source, "MapperIterDataPipe": source}}}
    assert len(get_all_graph_pipes(traverse_dps(pipe))) == 7
    pipe = Stream(3)
    pipe.itself, pipe.more = pipe, [pipe, {"x": numbers()}]
    assert shape(traverse_dps(pipe)) == {"Stream": {"IterableWrapperIterDataPipe": {}}}
    with pytest.raises(RuntimeError, match="Expected `IterDataPipe` or `MapDataPipe`, but <class 'int'> is found"):
        traverse_dps(5)
    assert IterDataPipe.reduce_ex_hook is None and MapDataPipe.getstate_hook is None


def test_shares():
    pipe = numbers(7).sharding_filter()
    assert list(apply_sharding(pipe, 3, 1)) == [1, 4] and len(pipe) == 2
    with pytest.raises(ValueError, match=r"instance_id\(3\) should be smaller than num_of_instances\(3\)"):
        apply_sharding(pipe, 3, 3)
    with pytest.raises(RuntimeError, match="cannot mix DEFAULT and non DEFAULT groups"):
        pipe.apply_sharding(2, 0, SHARDING_PRIORITIES.DISTRIBUTED)
    with pytest.raises(RuntimeError, match="Sharding twice on a single pipeline"):
        apply_sharding(numbers().sharding_filter().map(abs).sharding_filter(), 2, 0)
    groups = numbers(12).sharding_filter()
    groups.apply_sharding(2, 1, SHARDING_PRIORITIES.DISTRIBUTED)
    groups.apply_sharding(3, 2, SHARDING_PRIORITIES.MULTIPROCESSING)
    assert list(groups) == [5, 11]


def test_settings_of_a_pipeline():
    pipe = numbers().shuffle().map(abs)
    generator = torch.Generator()
    orders = []
    for _ in range(2):
        generator.manual_seed(9)
        orders.append(list(apply_random_seed(pipe, generator)))
    assert orders[0] == orders[1] != list(range(10))
    assert list(apply_shuffle_settings(pipe, False)) == list(range(10)) and apply_shuffle_settings(pipe, None) is pipe
    with pytest.warns(UserWarning, match="the datapipe does not contain a `Shuffler`"):
        assert sorted(apply_shuffle_settings(numbers(), True)) == list(range(10))


def test_a_snapshot_goes_on_where_it_was():
    pipe = numbers(5).map(abs)
    _simple_graph_snapshot_restoration(pipe, 2, torch.Generator())
    assert list(pipe) == [2, 3, 4] and list(pipe) == [0, 1, 2, 3, 4]
    with pytest.raises(RuntimeError, match="Fast-forward MapperIterDataPipe by 6 iterations exceeds"):
        _simple_graph_snapshot_restoration(pipe, 6, torch.Generator())


def test_collections_by_index():
    pipe = SequenceWrapper([3, 1, 2])
    assert [pipe.map(float)[i] for i in range(3)] == [3.0, 1.0, 2.0] and len(pipe.map(float)) == 3
    assert pipe.concat(SequenceWrapper([7]))[3] == 7 and pipe.zip(pipe)[1] == (1, 1) and pipe.batch(2)[1] == [2] and len(pipe.batch(2)) == 2
    with pytest.raises(IndexError, match="Index 4 is out of range."):
        pipe.concat(SequenceWrapper([7]))[4]
    with pytest.raises(IndexError, match="Index 1 is out of bound."):
        pipe.batch(2, drop_last=True)[1]
    with pytest.raises(TypeError, match="Expected all inputs to be `MapDataPipe`"):
        pipe.zip([1])


def test_files(tmp_path):
    (tmp_path / "deep").mkdir()
    for name, text in {"b.txt": "two", "a.txt": "one", "c.json": "[3]", "deep/d.txt": "four"}.items():
        (tmp_path / name).write_text(text)
    root = str(tmp_path)
    assert [name[len(root) + 1:] for name in FileLister(root, "*.txt")] == ["a.txt", "b.txt"]
    assert [name[len(root) + 1:] for name in FileLister(root, recursive=True)] == ["a.txt", "b.txt", "c.json", "deep/d.txt"]
    opened = FileOpener(FileLister(root, ["*.txt"]), mode="b")
    assert [content for _, content in StreamReader(opened, chunk=2)] == [b"on", b"e", b"tw", b"o"]
    with pytest.raises(ValueError, match="binary mode doesn't take an encoding argument"):
        FileOpener([], mode="rb", encoding="utf-8")
    with pytest.raises(TypeError, match="FileListerIterDataPipe instance doesn't have valid length"):
        len(FileLister(root))
    stream = StreamWrapper(open(tmp_path / "a.txt"), name="a")
    StreamWrapper.close_streams([{"x": (stream,)}])
    assert stream.closed and stream.file_obj.closed and repr(stream).startswith("StreamWrapper<a,<_io.TextIOWrapper")
    decoder = Decoder(handle_extension("bin", len), basichandlers)
    assert decoder(("x.json", b"[3]")) == {"x.json": [3]} and decoder(("x.bin", b"123")) == {"x.bin": 3} and decoder(("x.cls", b"7")) == {"x.cls": 7}


@pytest.mark.parametrize("workers, expected", [(0, [[2, 4, 18], [0, 20, 16], [22, 8, 12], [14, 10, 6]]),
                                               (2, [[2, 0, 10], [18, 20, 14], [4, 22, 6], [16, 8, 12]])])
def test_a_loader_seeds_and_shares_out_pipes(workers, expected):
    pipe = numbers(24).filter(even).shuffle().sharding_filter()
    torch.manual_seed(3 if workers == 0 else 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loader = DataLoader(pipe, batch_size=3, num_workers=workers)
        batches = [batch.tolist() for batch in loader]
        assert sorted(sum(batches, [])) == list(range(0, 24, 2))  # each sample once, whoever reads it
        assert batches == expected
        ordered = [batch.tolist() for batch in DataLoader(pipe, batch_size=3, num_workers=workers, shuffle=False)]
    assert sorted(sum(ordered, [])) == list(range(0, 24, 2)) and ordered[0] == ([0, 2, 4] if workers == 0 else [0, 4, 8])
    with pytest.raises(TypeError, match="_IterDataPipeSerializationWrapper instance doesn't have valid length"):
        len(loader)


def test_loaders_of_pipes_by_index():
    loader = DataLoader(SequenceWrapper(range(5)).map(float), batch_size=2)
    assert [batch.tolist() for batch in loader] == [[0.0, 1.0], [2.0, 3.0], [4.0]] and len(loader) == 3


def test_workers_that_die_are_told_of_by_name():
    import multiprocessing
    import os
    from umbra.utils.data._utils import signal_handling
    worker = multiprocessing.get_context("fork").Process(target=functools.partial(os._exit, 3))
    worker.start()
    os.waitid(os.P_PID, worker.pid, os.WEXITED | os.WNOWAIT)
    signal_handling._set_worker_pids(1, (worker.pid,))
    try:
        with pytest.raises(RuntimeError, match=rf"DataLoader worker \(pid {worker.pid}\) exited unexpectedly with exit code 3."):
            signal_handling._error_if_any_worker_fails()
        signal_handling._error_if_any_worker_fails()  # once
    finally:
        signal_handling._remove_worker_pids(1)
        worker.join()
    with pytest.raises(ValueError, match="Cannot find worker information"):
        signal_handling._remove_worker_pids(1)


class Ends:
    def __len__(self):
        return 4

    def __getitem__(self, index):
        raise StopIteration


def test_a_dataset_by_index_does_not_end_a_pass_by_itself():
    with pytest.raises(StopIteration, match="Caught StopIteration in DataLoader worker process 0"):
        next(iter(DataLoader(Ends(), num_workers=1)))


def test_loaders_of_other_packages_derive_their_iterators():
    from umbra.utils.data.dataloader import _BaseDataLoaderIter

    class Noting(_BaseDataLoaderIter):
        def __init__(self, loader):
            super().__init__(loader)
            self.seen = []

        def _next_data(self):
            self.seen.append(self._next_index())
            return [self._dataset[index] for index in self.seen[-1]]

    loader = DataLoader(range(5), batch_size=2)
    reader = Noting(loader)
    assert list(reader) == [[0, 1], [2, 3], [4]] and reader.seen == [[0, 1], [2, 3], [4]] and reader._num_yielded == 3
    reader._reset(loader)
    assert next(reader) == [0, 1] and reader._num_yielded == 1 and isinstance(reader._base_seed, int)
    with pytest.raises(NotImplementedError, match="cannot be pickled"):
        pickle.dumps(reader)


def test_workers_of_pipes_stay_and_are_seeded_anew():
    loader = DataLoader(numbers(12).shuffle().sharding_filter(), num_workers=2, persistent_workers=True, batch_size=None)
    torch.manual_seed(0)
    first, second = list(loader), list(loader)
    assert sorted(first) == sorted(second) == list(range(12)) and first != second
    loader._iterator._shutdown_workers()
