"""Datasets, samplers and loaders, in this process and in workers."""
import collections
import os
import time

import numpy as np
import pytest

import umbra
from umbra.utils.data import (
    BatchSampler, ChainDataset, DataLoader, Dataset, DistributedSampler, IterableDataset, SequentialSampler, StackDataset, WeightedRandomSampler,
    default_convert, get_worker_info)


class Numbers(Dataset):
    def __init__(self, count=10, bad=None):
        self.count, self.bad = count, bad

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        if i == self.bad:
            raise KeyError("no such sample") if i % 2 else ValueError("a bad sample")
        return umbra.tensor(float(i))


class Stream(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        return iter(range(10) if info is None else range(info.id, 10, info.num_workers))


class Pid(Numbers):
    def __getitem__(self, i):
        return os.getpid()


class Draws(Numbers):
    def __getitem__(self, i):
        return umbra.rand(1).item()


def batches(loader):
    return [batch.tolist() for batch in loader]


@pytest.mark.parametrize("workers", [0, 1, 2, 3])
def test_batches_come_in_the_order_of_the_sampler(workers):
    assert batches(DataLoader(Numbers(), batch_size=4, num_workers=workers)) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    sampler = BatchSampler(SequentialSampler(range(6)), 4, False)
    assert batches(DataLoader(Numbers(6), batch_sampler=sampler, num_workers=workers)) == [[0, 1, 2, 3], [4, 5]]
    assert batches(DataLoader(Numbers(3), batch_size=None, num_workers=workers)) == [0, 1, 2]


def test_workers_do_not_change_what_is_drawn():
    def run(workers):
        umbra.manual_seed(0)
        return batches(DataLoader(Numbers(), batch_size=3, shuffle=True, num_workers=workers)), umbra.rand(1).item()
    assert run(0) == run(2)


@pytest.mark.parametrize("workers, expected", [(0, [[0, 1, 2], [3, 4, 5], [6, 7, 8]]), (2, [[0, 2, 4], [1, 3, 5]])])
def test_streams_are_shared_out_by_the_workers_themselves(workers, expected):
    assert batches(DataLoader(Stream(), batch_size=3, drop_last=True, num_workers=workers)) == expected


def test_workers_are_processes_with_seeds_of_their_own():
    assert os.getpid() not in {pid.item() for pid in DataLoader(Pid(4), num_workers=2)}
    umbra.manual_seed(0)
    values = [v.item() for v in DataLoader(Draws(2), num_workers=2)]
    umbra.manual_seed(0)
    assert values[0] != values[1] and values == [v.item() for v in DataLoader(Draws(2), num_workers=2)]
    assert get_worker_info() is None


def test_workers_that_stay():
    loader = DataLoader(Pid(4), num_workers=2, persistent_workers=True)
    first = {pid.item() for pid in loader}
    assert first == {pid.item() for pid in loader} and len(first) == 2
    loader = DataLoader(Numbers(8), batch_size=2, num_workers=2, persistent_workers=True)
    next(iter(loader))  # a pass that is left early
    assert batches(loader) == [[0, 1], [2, 3], [4, 5], [6, 7]]


def set_double(_):
    umbra.set_default_dtype(umbra.float64)


class Default(Numbers):
    def __getitem__(self, i):
        return umbra.get_default_dtype() == umbra.float64


def test_workers_are_initialised():
    assert batches(DataLoader(Default(2), num_workers=1, worker_init_fn=set_double)) == [[True], [True]]
    assert umbra.get_default_dtype() == umbra.float32


@pytest.mark.parametrize("bad, error", [(3, KeyError), (4, ValueError)])
def test_errors_of_workers_come_back(bad, error):
    with pytest.raises(error, match="(?s)Caught .* in DataLoader worker process .*Original Traceback"):
        list(DataLoader(Numbers(6, bad=bad), batch_size=2, num_workers=2))


class Dies(Numbers):
    def __getitem__(self, i):
        os._exit(3)


class Sleeps(Numbers):
    def __getitem__(self, i):
        time.sleep(1)


def test_workers_that_die_or_hang():
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        list(DataLoader(Dies(2), num_workers=1))
    with pytest.raises(RuntimeError, match="timed out after 0.2 seconds"):
        list(DataLoader(Sleeps(1), num_workers=1, timeout=0.2))


@pytest.mark.parametrize("options, error", [
    ({"num_workers": -1}, ValueError), ({"prefetch_factor": 2}, ValueError), ({"persistent_workers": True}, ValueError),
    ({"multiprocessing_context": "fork"}, ValueError), ({"num_workers": 1, "multiprocessing_context": "teleport"}, ValueError),
    ({"batch_size": None, "drop_last": True}, ValueError), ({"unknown": 1}, TypeError)])
def test_options_that_contradict_each_other(options, error):
    with pytest.raises(error):
        DataLoader(Numbers(), **options)


def test_pinned_memory_needs_a_device():
    with pytest.warns(UserWarning, match="no accelerator is found"):
        list(DataLoader(Numbers(2), pin_memory=True))


def test_other_datasets():
    assert StackDataset(range(3), range(3, 6))[1] == (1, 4) and StackDataset(a=range(3))[2] == {"a": 2}
    with pytest.raises(ValueError, match="Size mismatch"):
        StackDataset(range(3), range(2))
    assert list(Stream() + Stream()) == [*range(10), *range(10)] and isinstance(Stream() + Stream(), ChainDataset)


def test_other_samplers():
    umbra.manual_seed(0)
    assert list(WeightedRandomSampler([0.0, 1.0, 0.0], 4)) == [1, 1, 1, 1]
    assert sorted(list(WeightedRandomSampler([0.1, 0.9, 0.4], 3, replacement=False))) == [0, 1, 2]
    shares = [list(DistributedSampler(range(10), 3, rank)) for rank in range(3)]
    assert {len(share) for share in shares} == {4} and set(sum(shares, [])) == set(range(10))
    # The order is that of torch 2.15.
    assert shares[0] == [4, 5, 0, 2]


def test_samples_without_batches():
    numpy = pytest.importorskip("numpy")
    assert isinstance(default_convert({"a": numpy.ones(2)})["a"], umbra.Tensor) and default_convert((1, "x")) == [1, "x"]


def test_a_loader_of_ones_own_gives_its_own_passes():
    class Mine(DataLoader):
        def _get_iterator(self):
            return iter(["mine"])
    assert list(Mine([1, 2])) == ["mine"]


def test_what_looks_like_a_loader_is_read_by_torchs_iterators():
    from umbra.utils.data.dataloader import _DatasetKind, _SingleProcessDataLoaderIter

    class Looks:
        dataset, _dataset_kind, _auto_collation, drop_last, num_workers = [10, 20, 30], _DatasetKind.Map, False, False, 0
        collate_fn, worker_init_fn, generator, _index_sampler = staticmethod(lambda x: x), None, None, range(3)
        timeout, persistent_workers, pin_memory, _IterableDataset_len_called = 0, False, False, None
    assert list(_SingleProcessDataLoaderIter(Looks())) == [10, 20, 30]
    fetcher = _DatasetKind.create_fetcher(_DatasetKind.Map, [1, 2, 3], True, sum, False)
    assert fetcher.fetch([0, 2]) == 4


def test_exceptions_travel_with_their_trace():
    from umbra._utils import ExceptionWrapper
    try:
        {}["missing"]
    except KeyError:
        wrapper = ExceptionWrapper(where="in thread 3")
    with pytest.raises(KeyError, match="Caught KeyError in thread 3") as caught:
        wrapper.reraise()
    assert "Original Traceback" in str(caught.value)


def test_a_weighted_sampler_draws_when_it_is_first_asked():
    sampler, drawn = WeightedRandomSampler([0.1, 0.9, 0.4, 3.0], 4), []
    for iterator in [iter(sampler), iter(sampler)]:
        umbra.manual_seed(0)
        drawn.append(list(iterator))
    assert drawn[0] == drawn[1]


def test_a_bad_sample_does_not_end_the_pass():
    loader, seen, errors = DataLoader(Numbers(6, bad=2), num_workers=2), [], 0
    iterator = iter(loader)
    while True:
        try:
            seen.append(next(iterator).item())
        except ValueError:
            errors += 1
        except StopIteration:
            break
    assert errors == 1 and seen == [0, 1, 3, 4, 5]


def test_what_a_loader_is_made_of_cannot_be_exchanged():
    loader = DataLoader(Numbers(4), batch_size=2)
    for name in ("batch_size", "sampler", "batch_sampler", "drop_last", "dataset", "persistent_workers"):
        with pytest.raises(ValueError, match=f"{name} attribute should not be set after DataLoader is initialized"):
            setattr(loader, name, None)
    loader.collate_fn = len
    assert list(loader) == [2, 2]


class ShortStream(Stream):
    def __len__(self):
        return 4


def test_a_stream_that_is_longer_than_it_says_is_warned_of():
    loader = DataLoader(ShortStream(), batch_size=2)
    list(loader)  # nobody has asked for its length
    assert len(loader) == 2
    with pytest.warns(UserWarning, match=r"reported to be 2\(when accessing len\(dataloader\)\), but 5 samples have been fetched"):
        list(loader)


def test_more_workers_than_processors_are_warned_of():
    with pytest.warns(UserWarning, match="will create 4096 worker processes"):
        DataLoader(Numbers(), num_workers=4096)


def test_streams_cannot_be_joined_by_index():
    with pytest.raises(AssertionError, match="does not support IterableDataset"):
        umbra.utils.data.ConcatDataset([Stream()])


class AtOnce(Numbers):
    def __getitems__(self, indices):
        return [10 * i for i in indices][:self.count]


def test_stacked_datasets_are_asked_for_many_samples_at_once():
    assert StackDataset(AtOnce(4), [5, 6, 7, 8]).__getitems__([0, 2]) == [(0, 5), (20, 7)]
    assert StackDataset(a=AtOnce(4), b=[5, 6, 7, 8]).__getitems__([1]) == [{"a": 10, "b": 6}]
    with pytest.raises(ValueError, match="Expected 3, got 1"):
        StackDataset(AtOnce(1), [5]).__getitems__([0, 0, 0])


class SparseRows(Numbers):
    def __getitem__(self, i):
        return umbra.eye(3)[i % 3].to_sparse()


def test_sparse_samples_come_from_workers():
    rows = list(DataLoader(SparseRows(3), batch_size=None, num_workers=1))
    assert umbra.equal(umbra.stack([row.to_dense() for row in rows]), umbra.eye(3))


def test_samples_that_are_no_numbers_are_left_as_they_are():
    words, counts = np.array(["a"]), collections.defaultdict(int, a=np.ones(1))
    assert default_convert([words])[0] is words
    converted = default_convert(counts)
    assert type(converted) is collections.defaultdict and isinstance(converted["a"], umbra.Tensor) and isinstance(counts["a"], np.ndarray)


def test_a_stream_needs_a_way_to_go_over_it():
    with pytest.raises(TypeError, match="__iter__"):
        IterableDataset()
    with pytest.raises(ValueError, match="drop_last should be a boolean value"):
        BatchSampler(range(3), 2, 1)


def test_persistent_workers_end_with_the_loader():
    batches = iter(DataLoader(list(range(40)), batch_size=2, num_workers=2, persistent_workers=True))
    workers = batches._workers
    next(batches)
    del batches
    for worker in workers:
        worker.join(10)
        assert not worker.is_alive()


def test_a_length_that_was_said_between_two_passes_counts_for_the_second():
    class Stream(IterableDataset):
        def __len__(self):
            return 3

        def __iter__(self):
            return iter(range(4))
    loader = DataLoader(Stream(), num_workers=1, persistent_workers=True)
    assert len(list(loader)) == 4
    assert len(loader) == 3
    with pytest.warns(UserWarning, match="4 samples have been fetched"):
        list(loader)


def test_what_samplers_and_splits_are_asked_for():
    with pytest.raises(ValueError, match="num_samples should be a positive integer value, but got num_samples=1.5"):
        umbra.utils.data.RandomSampler(range(3), num_samples=1.5)
    with pytest.warns(UserWarning, match="Length of split at index 2 is 0"):
        umbra.utils.data.random_split(range(4), [0.5, 0.5, 0.0])


def test_streams_come_in_their_own_order():
    class Stream(IterableDataset):
        def __iter__(self):
            return iter(range(3))

    for option in ({"sampler": [1], "shuffle": True}, {"batch_sampler": [[1]], "batch_size": 2}):
        with pytest.raises(ValueError, match="DataLoader with IterableDataset: expected unspecified"):
            DataLoader(Stream(), **option)


def test_batches_of_sparse_tensors_are_the_users():
    with pytest.raises(RuntimeError, match="Batches of sparse tensors are not currently supported"):
        umbra.utils.data.default_collate([umbra.eye(2).to_sparse()] * 2)


def test_the_misspelt_name_of_cumulative_sizes_warns():
    with pytest.warns(FutureWarning, match="`cummulative_sizes` attribute is renamed to `cumulative_sizes`"):
        assert umbra.utils.data.ConcatDataset([range(2), range(3)]).cummulative_sizes == [2, 5]


def test_set_vital_notes_nothing():
    with pytest.warns(UserWarning, match="'set_vital' is deprecated, please do not call"):
        assert umbra.set_vital("Dataloader", "enabled", "True") is None
