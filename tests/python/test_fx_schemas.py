"""Calls written out by their operators' schemas, and passes that go by them."""
import operator
from typing import List, Optional

import pytest

import umbra as torch
from call_log import CallLog
from umbra import fx, nn
from umbra.fx.experimental.normalize import NormalizeArgs
from umbra.fx.experimental.optimization import fuse, remove_dropout
from umbra.fx.experimental.proxy_tensor import make_fx
from umbra.fx.operator_schemas import check_for_mutable_operation, create_type_hint, get_signature_for_torch_op, normalize_function, type_matches
from umbra.fx.passes.reinplace import reinplace
from umbra.fx.passes.split_utils import split_by_tags

F = nn.functional
aten = torch.ops.aten


def names(gm):
    return [node.name for node in gm.graph.nodes]


def targets(gm):
    return [str(node.target) for node in gm.graph.nodes if node.op == "call_function"]


def test_signatures_name_what_operators_take():
    assert [list(s.parameters) for s in get_signature_for_torch_op(aten.relu)] == [["input"], ["input", "out"]]
    assert get_signature_for_torch_op(len) is None


def test_a_call_is_written_out_by_name():
    x = torch.ones(1)
    pair = normalize_function(aten.add.Tensor, (x, x), {"alpha": 2}, normalize_to_only_use_kwargs=True)
    assert pair.args == () and list(pair.kwargs) == ["input", "other", "alpha"]
    pair = normalize_function(aten.sum.dim_IntList, (x,), {"dim": [0]})
    assert len(pair.args) == 1 and pair.kwargs == {"dim": [0], "keepdim": False, "dtype": None}
    assert normalize_function(F.relu, (x,), {"inplace": True}, normalize_to_only_use_kwargs=True).kwargs == {"input": x, "inplace": True}


def test_types_choose_among_overloads():
    x = torch.ones(1)
    pair = normalize_function(torch.add, (x, 2), {}, arg_types=(torch.Tensor, int), normalize_to_only_use_kwargs=True)
    assert sorted(pair.kwargs) == ["alpha", "input", "other"]


def test_types_match_as_schemas_take_them():
    assert type_matches(List[int], List[int]) and type_matches(Optional[int], int) and type_matches(List[int], int)
    assert not type_matches(float, int) and not type_matches(int, str)
    assert create_type_hint([int, int]) == List[int]


def test_a_call_that_can_only_write_is_refused():
    x = torch.ones(1)
    with pytest.raises(RuntimeError, match="mutable operation"):
        check_for_mutable_operation(aten.relu_, (x,), {})
    check_for_mutable_operation(aten.relu, (x,), {})


def test_arguments_of_modules_by_name():
    gm = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2)))
    call = list(gm.graph.nodes)[1]
    assert list(call.normalized_arguments(gm, normalize_to_only_use_kwargs=True).kwargs) == ["input"]
    written = NormalizeArgs(fx.symbolic_trace(lambda x: F.relu(x))).transform()
    assert [sorted(node.kwargs) for node in written.graph.nodes if node.op == "call_function"] == [["inplace", "input"]]


def test_values_that_nobody_reads_any_more_are_written_in_place():
    gm = make_fx(lambda x: (x.clone() + 1) * 2)(torch.ones(2))
    reinplace(gm, torch.ones(2))
    assert targets(gm) == ["aten.clone.default", "aten.add_.Tensor", "aten.mul_.Tensor"]
    assert gm(torch.ones(2)).tolist() == [4, 4]


def test_inputs_and_values_read_later_are_not_written():
    def f(x):
        a = x + 1
        return a, a * 2, x - 1
    gm = make_fx(f)(torch.ones(2))
    reinplace(gm, torch.ones(2))
    assert targets(gm) == ["aten.add.Tensor", "aten.mul.Tensor", "aten.sub.Tensor"]


@pytest.mark.parametrize("seed", range(20))
def test_a_graph_written_in_place_computes_the_same(seed):
    import random
    choose = random.Random(seed)

    def f(x, y):
        values = [x, y]
        for _ in range(12):
            a, b = choose.choice(values), choose.choice(values)
            values.append(choose.choice([lambda: a + b, lambda: a * 2, lambda: a.t().contiguous().t(), lambda: a.relu(), lambda: a.t(),
                                         lambda: torch.select_scatter(a.clone(), b[0], 0, 1), lambda: a[:1].expand(2, 2) - b])())
        return values[-1] + values[-3], values[-2]
    x, y = torch.randn(2, 2), torch.randn(2, 2)
    state = choose.getstate()
    gm = make_fx(f)(x, y)
    choose.setstate(state)
    want = f(x, y)
    reinplace(gm, x, y)
    given = x.clone(), y.clone()
    for got, wanted in zip(gm(*given), want):
        assert torch.equal(got, wanted)
    assert torch.equal(given[0], x) and torch.equal(given[1], y)


def test_convolutions_take_in_their_batch_norms():
    model = nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2), nn.Dropout(0.3)).eval()
    model[1].running_mean.fill_(0.5)
    x = torch.randn(2, 1, 3, 3)
    fused = fuse(model)
    assert torch.allclose(fused(x), model(x), atol=1e-5)
    assert sum(isinstance(m, nn.BatchNorm2d) for m in fused.modules()) == 0
    assert names(remove_dropout(nn.Sequential(nn.Linear(2, 2), nn.Dropout()))) == ["input_1", "_0", "output"]


def test_a_graph_comes_apart_by_tags():
    gm = fx.symbolic_trace(lambda x: (x + 1) * 2 - 3)
    for node in gm.graph.nodes:
        node.meta["tag"] = "first" if node.target is operator.add else "second"
    parts = split_by_tags(gm, ["first", "second"])
    assert [name for name, _ in parts.named_children()] == ["first", "second"]
    assert parts(torch.ones(1)).tolist() == [1]


def test_sizes_of_nodes_count_results_and_parameters():
    from umbra.fx.passes.graph_manipulation import get_size_of_all_nodes, replace_target_nodes_with
    gm = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 3)))
    get_size_of_all_nodes(gm, [torch.ones(4, 2)])
    assert [tuple(node.meta["size_bytes"]) for node in gm.graph.nodes if node.op != "output"] == [(32, 32), (48, 84)]
    gm = fx.symbolic_trace(lambda x: torch.relu(x))
    replace_target_nodes_with(gm, "call_function", torch.relu, "call_function", torch.neg)
    assert gm(torch.ones(1)).tolist() == [-1]


def test_passes_run_in_an_order_that_constraints_allow():
    from umbra.fx.passes.pass_manager import PassManager, this_before_that_pass_constraint
    ran = []

    def first(x):
        ran.append("first")
        return x

    def second(x):
        ran.append("second")
        return x
    assert PassManager([first, second], [this_before_that_pass_constraint(first, second)])(3) == 3 and ran == ["first", "second"]
    with pytest.raises(RuntimeError, match="pass schedule constraint violated"):
        PassManager([second, first], [this_before_that_pass_constraint(first, second)])(3)


def test_types_that_do_not_fit_a_call_leave_it_as_it_is():
    node = next(n for n in torch.fx.symbolic_trace(lambda x: torch.add(x, 1)).graph.nodes if n.op == "call_function")
    assert node.normalized_arguments(torch.nn.Module(), (torch.Tensor,), {}) is None
    assert node.normalized_arguments(torch.nn.Module(), (torch.Tensor, torch.Tensor), {}) is not None


def test_equal_numbers_of_a_list_are_written_as_one():
    text = str(torch.ops.aten.avg_pool2d.default._schema)
    assert "int[2] stride=[]" in text and "int[2] padding=0," in text
    assert "SymInt[2] stride=[1, 1]" in str(torch.ops.aten.conv2d.default._schema)


def test_a_composite_operator_does_what_it_is_made_of():
    linear = torch.ops.aten.linear.default
    assert linear._can_decompose() and not torch.ops.aten.sin.default._can_decompose()
    with CallLog() as log:
        assert torch.equal(linear.decompose(torch.ones(1, 2), weight=torch.ones(3, 2)), torch.full((1, 3), 2.0))
    assert log.seen[:4] == ["aten.ones.default", "aten.ones.default", "aten.t.default", "aten.mm.default"]
    assert torch.ops.aten.sin.default.decompose(torch.ones(1)) is NotImplemented


def test_types_in_schemas_have_pytorchs_numbers():
    with torch.library._scoped_library("numbered", "FRAGMENT") as own:
        own.define("cast(Tensor x, ScalarType to=15, ScalarType other=long) -> Tensor")
        schema = torch.ops.numbered.cast.default._schema
        assert str(schema) == "numbered::cast(Tensor x, ScalarType to=15, ScalarType other=4) -> Tensor"
        assert [a.default_value for a in schema.arguments] == [None, 15, 4]
        with pytest.raises(RuntimeError, match="no type of elements has the number 99"):
            own.define("other(ScalarType to=99) -> Tensor")


def test_questions_about_sizes_are_operators():
    assert torch.ops.aten.size(torch.ones(2, 3)) == [2, 3] and torch.ops.aten.stride.default(torch.ones(2, 3)) == [3, 1]
    assert str(torch.ops.aten.sym_size.default) == "aten.sym_size.default"


def test_functions_of_the_package_have_signatures_or_none():
    assert all(isinstance(get_signature_for_torch_op(getattr(torch, name)), (list, type(None))) for name in dir(torch) if callable(getattr(torch, name, None)))
    assert list(get_signature_for_torch_op(torch.conv_tbc_backward)[0].parameters) == ["self", "input", "weight", "bias", "pad"]
    assert get_signature_for_torch_op(torch.tensor) is None and get_signature_for_torch_op(torch.qscheme) is None


def test_schemas_are_found_by_the_operator_s_name():
    found = torch._C._jit_get_schemas_for_operator("aten::relu")
    assert [str(schema) for schema in found] == ["aten::relu(Tensor self) -> Tensor", "aten::relu.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)"]
    assert {schema.overload_name for schema in torch._C._jit_get_schemas_for_operator("aten::sub")} >= {"Tensor", "Scalar", "out"}
    assert torch._C._jit_get_schemas_for_operator("aten::no_such_operator") == []
    everything = {(schema.name, schema.overload_name) for schema in torch._C._jit_get_all_schemas()}
    assert ("aten::relu", "") in everything and ("aten::add", "Tensor") in everything and len(everything) > 2000
