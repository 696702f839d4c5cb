"""torch.distributed of one process, beside what PyTorch 2.15 says of a world of one with gloo."""
import copy
import datetime
import pickle

import pytest

import umbra as torch
import umbra.distributed as dist
from umbra import nn
from umbra.distributed.algorithms.ddp_comm_hooks import debugging_hooks, default_hooks
from umbra.nn.parallel import DistributedDataParallel
from umbra.utils.data import DistributedSampler, TensorDataset


@pytest.fixture
def world(tmp_path):
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    yield dist.group.WORLD
    if dist.is_initialized():
        dist.destroy_process_group()


# ---- entering the world ----

def test_before_there_is_a_group():
    assert dist.is_available() and not dist.is_initialized() and dist.is_gloo_available() and not dist.is_nccl_available()
    assert dist.group.WORLD is None and dist.is_backend_available("gloo") and not dist.is_backend_available("nope")
    for ask in (dist.get_rank, dist.get_world_size, dist.get_backend, dist.barrier, lambda: dist.all_reduce(torch.ones(2)),
                lambda: DistributedDataParallel(nn.Linear(1, 1)), lambda: DistributedSampler([1])):
        with pytest.raises(ValueError, match="Default process group has not been initialized"):
            ask()


def test_what_a_world_of_one_says(world):
    assert (dist.get_rank(), dist.get_world_size(), dist.get_backend(), dist.get_backend_config()) == (0, 1, "gloo", "cpu:gloo,cuda:gloo")
    assert (world.size(), world.rank(), world.name(), world.group_name, world.group_desc) == (1, 0, "gloo", "0", "default_pg")
    assert dist.GroupMember.WORLD is world and dist.get_process_group_ranks(None) == [0] and dist.get_pg_count() == 1
    with pytest.raises(ValueError, match="twice"):
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)


def test_the_environment_says_who_one_is(monkeypatch):
    with pytest.raises(ValueError, match="environment variable RANK expected, but not set"):
        dist.init_process_group("gloo")
    for name, value in {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": "29555", "LOCAL_RANK": "0"}.items():
        monkeypatch.setenv(name, value)
    dist.init_process_group()
    assert dist.get_world_size() == 1 and dist.get_node_local_rank() == 0
    dist.destroy_process_group()
    assert not dist.is_initialized()


def test_what_cannot_be_entered():
    enter = dist.init_process_group
    with pytest.raises(RuntimeError, match="a world of 2 processes is not in Umbra"):
        enter("gloo", init_method="tcp://localhost:29555", rank=0, world_size=2)
    with pytest.raises(RuntimeError, match="doesn't have NCCL built in"):
        enter("nccl", store=dist.HashStore(), rank=0, world_size=1)
    with pytest.raises(AssertionError, match="Unknown backend type nope"):
        enter("nope", store=dist.HashStore(), rank=0, world_size=1)
    with pytest.raises(AssertionError, match="world_size must be positive"):
        enter("gloo", store=dist.HashStore())
    with pytest.raises(RuntimeError, match="No rendezvous handler for foo://"):
        enter("gloo", init_method="foo://x", rank=0, world_size=1)
    assert not dist.is_initialized()


def test_groups(world):
    group = dist.new_group([0])
    assert (dist.get_rank(group), dist.get_world_size(group), group.group_name) == (0, 1, "1")
    with pytest.raises(ValueError, match="should be less or equal"):
        dist.new_group([0, 1])
    with pytest.raises(ValueError, match="Rank 1 is out of range"):
        dist.new_group([1])
    dist.destroy_process_group(group)
    with pytest.raises(ValueError, match="is not registered"):
        dist.get_rank(group)
    assert dist.new_subgroups(1)[0].size() == 1 and dist.get_rank(dist.GroupMember.NON_GROUP_MEMBER) == -1


# ---- collectives ----

def test_reductions_keep_what_one_has(world):
    for op in dist.ReduceOp:
        x = torch.tensor([3., 4.]) if not op.name.startswith("B") else torch.tensor([3, 4])
        assert dist.all_reduce(x, op=op) is None and x.tolist() == [3, 4]
    work = dist.all_reduce(x, async_op=True)
    assert work.wait() and work.is_completed() and work.get_future().wait()[0] is x
    with pytest.raises(RuntimeError, match="Cannot use ReduceOp.BAND with non-integral dtype"):
        dist.all_reduce(torch.ones(1), dist.ReduceOp.BAND)
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
        dist.all_reduce(torch.ones(1, dtype=torch.int64), dist.ReduceOp.AVG)
    with pytest.raises(ValueError, match="all_reduce does not support RedOpType.MAX on complex tensors"):
        dist.all_reduce(torch.ones(1, dtype=torch.complex64), dist.ReduceOp.MAX)
    with pytest.raises(TypeError, match="Expected parameter `tensor` of type torch.Tensor"):
        dist.all_reduce([x])
    with pytest.raises(RuntimeError, match="invalid root rank: 1"):
        dist.broadcast(x, 1)


def test_outputs_are_filled(world):
    x = torch.arange(4.)
    calls = {
        "all_gather": lambda o: dist.all_gather([o], x), "all_gather_into_tensor": lambda o: dist.all_gather_into_tensor(o, x),
        "reduce_scatter": lambda o: dist.reduce_scatter(o, [x]), "reduce_scatter_tensor": lambda o: dist.reduce_scatter_tensor(o, x),
        "gather": lambda o: dist.gather(x, [o], 0), "scatter": lambda o: dist.scatter(o, [x], 0),
        "all_to_all": lambda o: dist.all_to_all([o], [x]), "all_to_all_single": lambda o: dist.all_to_all_single(o, x)}
    for name, call in calls.items():
        output = torch.zeros(4)
        call(output)
        assert output.tolist() == [0, 1, 2, 3], name
    with pytest.raises(RuntimeError, match=r"expected length 1, got 2"):
        dist.all_gather([torch.zeros(4)] * 2, x)
    with pytest.raises(RuntimeError, match=r"invalid tensor size at index 0 \(expected \(4\), got \(3\)\)"):
        dist.all_gather([torch.zeros(3)], x)
    with pytest.raises(ValueError, match="different dtypesFound torch.int32 and  torch.float32"):
        dist.all_gather([torch.zeros(4, dtype=torch.int32)], x)


def test_objects(world):
    given, taken = {"a": [1]}, [None]
    dist.all_gather_object(taken, given)
    assert taken == [given] and taken[0] is not given
    dist.gather_object("x", taken, 0)
    assert taken == ["x"]
    dist.scatter_object_list(taken, ["y"], 0)
    dist.broadcast_object_list(taken, 0)
    assert taken == ["y"]


def test_collectives_with_gradients(world):
    import umbra.distributed._functional_collectives as functional
    from umbra.distributed.nn.functional import all_gather, all_reduce
    x = torch.ones(2, requires_grad=True)
    (all_reduce(x * 2) + all_gather(x * 3)[0] + functional.all_reduce(x, "sum", world)).sum().backward()
    assert x.grad.tolist() == [6, 6]


# ---- training ----

def test_gradients_of_one_process_are_its_own(world):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 1))
    alone, wrapped = copy.deepcopy(net), DistributedDataParallel(net)
    assert wrapped.module is net and list(wrapped.state_dict())[0] == "module.0.weight" and wrapped.device == torch.device("cpu")
    x = torch.randn(8, 4)
    for _ in range(2):
        with wrapped.no_sync():
            wrapped(x).sum().backward()
        wrapped(x).square().sum().backward()
        alone(x).sum().backward()
        alone(x).square().sum().backward()
    for p, q in zip(alone.parameters(), wrapped.parameters()):
        assert torch.equal(p.grad, q.grad)
    data = wrapped._get_ddp_logging_data()
    assert data["backend_name"] == "gloo" and data["num_parameter_tensors"] == 6 and data["total_parameter_size_bytes"] == 100 and data["static_graph"] == 0
    assert wrapped.will_sync_module_buffers() and not DistributedDataParallel(nn.Linear(1, 1)).will_sync_module_buffers()
    again = pickle.loads(pickle.dumps(wrapped))
    assert torch.equal(again.eval()(x), wrapped.eval()(x)) and again.process_group is world


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)

    def forward(self, x):
        return {"out": self.a(x)}


def test_parameters_without_gradients_are_told(world):
    x = torch.ones(1, 2)
    wrapped = DistributedDataParallel(Branches())
    wrapped(x)["out"].sum().backward()
    with pytest.raises(RuntimeError, match="(?s)Expected to have finished reduction.*did not receive grad for rank 0: 2 3"):
        wrapped(x)
    for option in ("find_unused_parameters", "static_graph"):
        wrapped = DistributedDataParallel(Branches(), **{option: True})
        for _ in range(2):
            wrapped(x)["out"].sum().backward()
        assert wrapped.module.b.weight.grad is None and wrapped.module.a.bias.grad.tolist() == [2, 2]


def test_hooks_are_given_the_gradients(world):
    def twice(state, bucket):
        state.append((bucket.index(), bucket.is_last(), [tuple(g.shape) for g in bucket.gradients()]))
        future = torch.futures.Future()
        future.set_result(bucket.buffer() * 2)
        return future
    seen, wrapped = [], DistributedDataParallel(nn.Linear(2, 1))
    wrapped.register_comm_hook(seen, twice)
    wrapped(torch.ones(3, 2)).sum().backward()
    assert wrapped.module.weight.grad.tolist() == [[6, 6]] and seen == [(0, True, [(1,), (1, 2)])]
    for hook in (default_hooks.allreduce_hook, default_hooks.fp16_compress_hook, debugging_hooks.noop_hook,
                 default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook)):
        wrapped = DistributedDataParallel(nn.Linear(2, 1))
        wrapped.register_comm_hook(None, hook)
        wrapped(torch.ones(3, 2)).sum().backward()
        assert wrapped.module.weight.grad.tolist() == [[3, 3]] and wrapped.module.weight.grad.dtype == torch.float32
    with pytest.raises(TypeError, match="BF16 all reduce"):
        DistributedDataParallel(nn.Linear(2, 1)).register_comm_hook(None, default_hooks.bf16_compress_hook)


def test_modules_that_are_not_taken(world):
    for module, options, kind, text in (
            (nn.ReLU(), {}, RuntimeError, "doesn't have any parameter"), (nn.Linear(2, 2), {"device_ids": [0]}, ValueError, "got device_ids"),
            (nn.LazyLinear(2), {}, RuntimeError, "uninitialized parameters")):
        with pytest.raises(kind, match=text):
            DistributedDataParallel(module, **options)
    net = Branches()
    DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(net, ["b.weight", "b.bias"])
    assert len(DistributedDataParallel(net).reducer.parameters) == 2
    with pytest.raises(ValueError, match="SyncBatchNorm expected input tensor to be on GPU"):
        nn.SyncBatchNorm(3)(torch.ones(2, 3))
    assert nn.SyncBatchNorm(3).eval()(torch.ones(2, 3)).shape == (2, 3)


def test_a_sampler_asks_the_world(world):
    sampler = DistributedSampler(TensorDataset(torch.arange(5)), shuffle=False)
    assert list(sampler) == [0, 1, 2, 3, 4] and sampler.num_replicas == 1


# ---- stores, meshes ----

def test_stores(tmp_path):
    for store in (dist.HashStore(), dist.FileStore(str(tmp_path / "file"), 1), dist.TCPStore("127.0.0.1", 0, 1, True)):
        store.set("a", "b")
        assert store.get("a") == b"b" and store.add("n", 3) == 3 and store.add("n", 4) == 7 and store.get("n") == b"7"
        assert store.compare_set("k", "", "v") == b"v" and store.check(["a", "k"]) and not store.check(["q"]) and store.delete_key("a")
        store.set_timeout(datetime.timedelta(seconds=0.02))
        with pytest.raises(dist.DistStoreError, match="Wait timeout"):
            store.get("q")
        dist.PrefixStore("p", store).set("x", b"1")
        assert store.get("p/x") == b"1"


def test_meshes_of_one(world):
    from umbra.distributed.device_mesh import init_device_mesh
    mesh = init_device_mesh("cpu", (1, 1), mesh_dim_names=("dp", "tp"))
    assert str(mesh) == "DeviceMesh((dp=1, tp=1), 'cpu', stride=((), ()))" and str(mesh["dp"]) == "DeviceMesh((dp=1), 'cpu', stride=((),))"
    assert mesh.shape == (1, 1) and mesh["tp"].get_local_rank() == 0 and mesh["tp"].get_group() is world
    with pytest.raises(RuntimeError, match="Mesh should not be bigger than default world size 1, but found 2 ranks!"):
        init_device_mesh("cpu", (2,))


# ---- states by name ----

def test_states_of_models_and_optimisers_are_by_name(world):
    from umbra.distributed.checkpoint.state_dict import (StateDictOptions, get_model_state_dict, get_optimizer_state_dict, get_state_dict, set_state_dict)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    wrapped, options = DistributedDataParallel(net), StateDictOptions(flatten_optimizer_state_dict=True)
    optimizer = torch.optim.Adam([{"params": net[0].parameters(), "lr": 0.1}, {"params": net[1].parameters()}], lr=0.2)
    before = net[0].weight.clone()
    empty = get_optimizer_state_dict(wrapped, optimizer)
    assert empty["state"]["0.weight"]["step"] == 1 and torch.equal(net[0].weight, before) and net[0].weight.grad is None
    wrapped(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    model_state, state = get_state_dict(wrapped, optimizer)
    assert list(model_state) == ["0.weight", "0.bias", "1.weight", "1.bias"] and list(state["state"]) == list(model_state)
    assert [group["params"] for group in state["param_groups"]] == [["0.weight", "0.bias"], ["1.weight", "1.bias"]]
    flat = get_optimizer_state_dict(net, optimizer, options=options)
    assert flat["param_groups.0.bias.lr"] == 0.1 and torch.equal(flat["state.1.weight.exp_avg"], state["state"]["1.weight"]["exp_avg"])
    for taken, how in ((state, StateDictOptions()), (flat, options)):
        other = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
        fresh = torch.optim.Adam([{"params": other[0].parameters()}, {"params": other[1].parameters()}], lr=0.5)
        missing = set_state_dict(other, fresh, model_state_dict=model_state, optim_state_dict=taken, options=how)
        assert not missing.missing_keys and torch.equal(other[1].weight, net[1].weight)
        assert [group["lr"] for group in fresh.param_groups] == [0.1, 0.2] and fresh.state[other[0].weight]["step"] == 2
    net[0].weight.requires_grad_(False)
    assert list(get_model_state_dict(net, options=StateDictOptions(ignore_frozen_params=True)))[0] == "0.bias"
    with pytest.raises(RuntimeError, match="Optimizers are not passed in"):
        get_optimizer_state_dict(net, ())
