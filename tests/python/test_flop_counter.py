"""Counts of operations while a program runs; figures are those of PyTorch 2.15."""
import pytest

import umbra
from umbra import nn
from umbra.autograd import Variable
from umbra.utils.flop_counter import FlopCounterMode, register_flop_formula
from umbra.utils.module_tracker import ModuleTracker


def counted(function, **options):
    with FlopCounterMode(display=False, **options) as counter:
        function()
    return counter


def test_operations_are_counted_by_module_and_operator_in_both_passes():
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Sequential(nn.Linear(4, 2)))
    counter = counted(lambda: model(umbra.ones(5, 3)).sum().backward())
    counts = {name: {str(operator): n for operator, n in of.items()} for name, of in counter.get_flop_counts().items()}
    assert counter.get_total_flops() == 480
    assert counts == {"Global": {"aten.addmm": 200, "aten.mm": 280}, "Sequential": {"aten.addmm": 200, "aten.mm": 280},
                      "Sequential.0": {"aten.addmm": 120, "aten.mm": 120}, "Sequential.2": {"aten.addmm": 80, "aten.mm": 160},
                      "Sequential.2.0": {"aten.addmm": 80, "aten.mm": 160}}
    assert counter.get_table(depth=1) == ("Module          FLOP    % Total\n------------  ------  ---------\nSequential       480    100.00%\n"
                                          "- aten.addmm     200     41.67%\n- aten.mm        280     58.33%")


def test_convolutions_and_attention():
    x = umbra.ones(1, 2, 8, 8, requires_grad=True)
    counter = counted(lambda: nn.ConvTranspose2d(2, 4, 3, groups=2, stride=2)(x).sum().backward())
    assert counter.get_total_flops() == 4608 + 13824
    query, key = umbra.ones(1, 4, 3, 8, requires_grad=True), umbra.ones(1, 2, 5, 8, requires_grad=True)
    counter = counted(lambda: nn.functional.scaled_dot_product_attention(query, key, key, enable_gqa=True).sum().backward())
    assert counter.get_total_flops() == 1920 + 4800


def test_formulas_of_users():
    custom = {umbra.ops.aten.cos: lambda x, out_shape: 3 * len(x)}
    assert counted(lambda: umbra.ones(2).sin().cos(), custom_mapping=custom).get_total_flops() == 3
    with pytest.raises(RuntimeError, match="duplicate registrations for aten.mm"):
        register_flop_formula(umbra.ops.aten.mm)(lambda *args, **kwargs: 0)
    with pytest.raises(ValueError, match="expected each target"):
        register_flop_formula(3)(lambda *args, **kwargs: 0)


def test_the_modules_that_are_running():
    model, seen = nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.Linear(4, 2))), []
    with ModuleTracker() as tracker:
        model[1][0].register_forward_pre_hook(lambda module, args: seen.append((sorted(tracker.parents), tracker.is_bw)))
        model(umbra.ones(5, 3)).sum().backward()
    assert seen == [(["Global", "Sequential", "Sequential.1", "Sequential.1.0"], False)]
    assert tracker.parents == {"Global"}


def test_modules_in_lists_have_the_names_of_their_places():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers, self.heads = nn.ModuleList([nn.Linear(2, 2)]), nn.ModuleDict({"one": nn.Linear(2, 2)})

        def forward(self, x):
            return self.heads["one"](self.layers[0](x))

    model, seen = Net(), []
    with ModuleTracker() as tracker:
        for module in (model.layers[0], model.heads["one"]):
            module.register_forward_pre_hook(lambda module, args: seen.append(sorted(tracker.parents)))
        model(umbra.ones(1, 2))
    assert seen == [["Global", "Net", "Net.layers.0"], ["Global", "Net", "Net.heads.one"]]


def test_functions_that_wait_for_the_end_of_a_backward_pass():
    x, seen = umbra.ones(2, requires_grad=True), []
    y = x * 2
    y.register_hook(lambda gradient: Variable._execution_engine.queue_callback(lambda: seen.append(x.grad.clone())))
    y.sum().backward(inputs=[x])
    assert [gradient.tolist() for gradient in seen] == [[2.0, 2.0]]
    with pytest.raises(RuntimeError, match="during backward pass"):
        Variable._execution_engine.queue_callback(lambda: None)
