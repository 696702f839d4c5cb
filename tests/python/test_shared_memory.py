"""Tensors that several processes see."""
import multiprocessing

import pytest

import umbra
from umbra import nn


def _in_a_child(function, *arguments):
    child = multiprocessing.get_context("fork").Process(target=function, args=arguments)
    child.start()
    child.join(30)
    assert child.exitcode == 0


def test_a_child_writes_to_memory_that_is_shared():
    shared, own = umbra.zeros(3).share_memory_(), umbra.zeros(3)
    assert shared.is_shared() and not own.is_shared()
    part = shared[1:]

    def write():
        part.fill_(5)
        own.fill_(5)
    _in_a_child(write)
    assert shared.tolist() == [0, 5, 5]
    assert own.tolist() == [0, 0, 0]


def test_sharing_keeps_values_views_and_identity():
    base = umbra.arange(6.0).reshape(2, 3)
    column, storage = base[:, 1], base.untyped_storage()
    assert base.share_memory_() is base
    assert column.is_shared() and storage.is_shared() and base.storage().is_shared()
    base[1, 1] = 9
    assert column.tolist() == [1, 9]
    assert not base.clone().is_shared()
    assert umbra.empty(0).share_memory_().is_shared()


def test_memory_that_is_shared_keeps_its_size():
    with pytest.raises(RuntimeError, match="not resizable"):
        umbra.zeros(3).share_memory_().resize_(1000)


def test_memory_without_data_is_not_shared():
    with pytest.raises(RuntimeError, match="only available on CPU"):
        umbra.zeros(3, device="meta").share_memory_()


def test_a_module_shares_its_parameters_and_buffers():
    module = nn.BatchNorm1d(2)
    assert module.share_memory() is module
    assert all(tensor.is_shared() for tensor in module.state_dict().values())

    def train():
        module(umbra.randn(4, 2))
        with umbra.no_grad():
            module.weight.add_(1)
    _in_a_child(train)
    assert module.weight.tolist() == [2, 2] and module.num_batches_tracked == 1


def _answer(requests, answers):
    first, second = requests.get(timeout=30)
    first.mul_(10)
    answers.put((first.storage_offset(), second.tolist(), first.is_shared()))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_what_is_sent_is_one_memory_on_both_sides(method):
    context = umbra.multiprocessing.get_context(method)
    requests, answers = context.Queue(), context.Queue()
    base = umbra.arange(4.0)
    child = context.Process(target=_answer, args=(requests, answers))
    child.start()
    requests.put((base[2:], base))
    assert answers.get(timeout=60) == (2, [0, 1, 20, 30], True)  # two tensors of one memory stay so
    child.join(30)
    assert base.tolist() == [0, 1, 20, 30]


def test_a_result_of_autograd_is_not_sent():
    from multiprocessing.reduction import ForkingPickler
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor"):
        ForkingPickler.dumps(umbra.ones(2, requires_grad=True) * 2)


def _double(index, shared):
    shared[index] *= 2


def test_processes_that_are_spawned_share_their_arguments():
    shared = umbra.arange(1.0, 3.0).share_memory_()
    umbra.multiprocessing.spawn(_double, args=(shared,), nprocs=2)
    assert shared.tolist() == [2, 4]


class _Squares(umbra.utils.data.Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, index):
        return umbra.full((3,), float(index * index))


def test_batches_of_workers_come_in_shared_memory():
    batches = list(umbra.utils.data.DataLoader(_Squares(), batch_size=2, num_workers=2))
    assert [batch[:, 0].tolist() for batch in batches] == [[0, 1], [4, 9], [16, 25]]
    assert all(batch.is_shared() for batch in batches)
