"""Estimates of what a model costs, against what a run allocates and against counts done by hand."""
import pathlib
import sys

import pytest

import umbra
from umbra import nn
from umbra._subclasses.fake_tensor import FakeTensorMode

sys.path.append(str(pathlib.Path(__file__).parent.parent / "compare"))
from transformer import transformer  # noqa: E402  (of the comparisons)

Block, _ = transformer(umbra)


def gpt(layers=3, width=64):
    return nn.Sequential(nn.Embedding(100, width), *(Block(width, 4) for _ in range(layers)), nn.Linear(width, 100))


def mlp():
    return nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))


@pytest.mark.parametrize("make, args", [(mlp, (umbra.ones(32, 64),)), (gpt, (umbra.zeros(4, 16, dtype=umbra.int64),))])
@pytest.mark.parametrize("options", [{}, {"training": True}, {"training": True, "optimizer": "adamw"}, {"training": True, "optimizer": "sgd"}])
def test_the_estimate_is_what_a_run_allocates(make, args, options):
    model = make()
    values = [p.clone() for p in model.parameters()]
    estimated, measured = umbra.estimate(model, args, **options), umbra.estimate(model, args, with_data=True, **options)
    assert abs(estimated.peak - measured.peak) <= 0.03 * measured.peak
    for name in ("parameters", "buffers", "inputs", "gradients", "optimizer_state", "flops", "flops_by_module"):
        assert getattr(estimated, name) == getattr(measured, name), name
    assert estimated.saved_activations == pytest.approx(measured.saved_activations, rel=0.03)
    assert all(p.grad is None and umbra.equal(p, value) for p, value in zip(model.parameters(), values)), "the model stays as it was"


def test_parts_of_a_training_step():
    cost = umbra.estimate(mlp(), (umbra.ones(32, 64),), training=True, optimizer=umbra.optim.Adam)
    weights = 4 * (2 * 64 * 256 + 256 + 64)
    assert cost.parameters == cost.gradients == weights and cost.inputs == 4 * 32 * 64
    assert 2 * weights <= cost.optimizer_state <= 2 * weights + 64
    assert cost.saved_activations == 4 * 32 * 256
    products = 2 * 32 * 64 * 256
    assert cost.flops == 5 * products and cost.flops_by_module == {"": 5 * products, "0": 2 * products, "2": 3 * products}
    assert cost.peak_phase == "optimizer" and cost.timeline()[-1] == pytest.approx(cost.parameters + cost.inputs + cost.optimizer_state, abs=64)


def test_the_module_at_the_peak_is_found_in_the_backward_pass_too():
    model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 4096), nn.Linear(4096, 8))
    cost = umbra.estimate(model, (umbra.ones(2048, 8),), training=True)
    assert (cost.peak_module, cost.peak_phase) == ("2", "backward")
    assert set(cost.flops_by_module) == {"", "0", "1", "2"}


def test_a_model_that_fits_no_machine():
    with FakeTensorMode():
        model = nn.Sequential(*(nn.Linear(100_000, 100_000, bias=False) for _ in range(10)))
        x = umbra.empty(16, 100_000)
    cost = umbra.estimate(model, (x,), training=True, optimizer="adamw")
    assert cost.parameters == 10 * 4 * 10**10 and cost.peak > 4 * cost.parameters


def test_the_largest_batch_fits_and_the_next_one_does_not():
    cost = umbra.estimate(mlp(), (umbra.ones(2, 64),), training=True)
    batch = cost.largest_batch("8MiB")
    peaks = [umbra.estimate(mlp(), (umbra.ones(n, 64),), training=True).peak for n in (batch, batch + 1)]
    assert peaks[0] <= 8 * 2**20 < peaks[1]
    assert cost.largest_batch(1000) == 0
    with pytest.raises(ValueError, match="80GiB"):
        cost.largest_batch("plenty")


def test_a_loss_an_output_without_gradients_and_unknown_optimizers():
    def loss(outputs):
        return outputs.square().mean()
    assert umbra.estimate(mlp(), (umbra.ones(2, 64),), training=True, loss=loss).flops > 0
    with pytest.raises(ValueError, match="requires gradients"):
        umbra.estimate(lambda x: x + 1, (umbra.ones(2),), training=True)
    with pytest.raises(ValueError, match="no optimizer 'adamm'"):
        umbra.estimate(mlp(), (umbra.ones(2, 64),), training=True, optimizer="adamm")
    with pytest.raises(ValueError, match="training=True"):
        umbra.estimate(mlp(), (umbra.ones(2, 64),), optimizer="adam")


def test_the_page_shows_the_peak_and_the_modules(tmp_path):
    cost = umbra.estimate(mlp(), (umbra.ones(32, 64),), training=True)
    cost.save_plot(tmp_path / "cost.html", title="An <MLP>")
    page = (tmp_path / "cost.html").read_text()
    assert "<svg" in page and "An &lt;MLP&gt;" in page and "Peak memory" in page and page.count("<title>") > 10


def test_convolutions_and_attention_are_counted_as_torch_counts_them():
    x, w = umbra.ones(2, 4, 9, 9, requires_grad=True), nn.Conv2d(4, 6, 3, stride=2, groups=2)
    assert umbra.estimate(w, (x,)).flops == 2 * 2 * 6 * 4 * 4 * 2 * 9
    assert umbra.estimate(w, (x,), training=True).flops_by_operator == {
        "aten::convolution": 6912, "aten::convolution_backward": 2 * 2 * 16 * 6 * 2 * 9 + 2 * 4 * 9 * 6 * 2 * 16}
    q = umbra.ones(2, 3, 5, 8, requires_grad=True)
    forward = 2 * 6 * 5 * 5 * 16
    cost = umbra.estimate(nn.functional.scaled_dot_product_attention, (q, q, q), training=True)
    assert sum(v for k, v in cost.flops_by_operator.items() if "backward" not in k) == forward


class Chooses(nn.Module):
    def forward(self, x):
        return umbra.cond(x.sum() > 0, lambda t: t.relu() + 1, lambda t: t.cos() + 2, (x,))


def test_what_convolutions_take_for_themselves_is_in_the_estimate():
    model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 8, 3, stride=2), nn.Flatten(), nn.Linear(8 * 15 * 15, 4))
    threads = umbra.get_num_threads()
    umbra.set_num_threads(1)
    try:
        for options in ({}, {"training": True, "optimizer": "sgd"}):
            estimated, measured = (umbra.estimate(model, (umbra.ones(4, 3, 32, 32),), with_data=data, **options) for data in (False, True))
            assert abs(estimated.peak - measured.peak) <= 0.03 * measured.peak, options
    finally:
        umbra.set_num_threads(threads)


def test_a_cond_costs_its_dearer_branch_and_its_result_once():
    estimated, measured = (umbra.estimate(Chooses(), (umbra.ones(1000),), with_data=data) for data in (False, True))
    assert estimated.peak == pytest.approx(measured.peak, rel=0.03)


def test_sorting_conjugating_and_inverting_take_memory_of_their_own():
    for function, args in ((lambda x: x.sort().values, (umbra.ones(5000),)), (lambda x: x.conj() * x, (umbra.ones(500, dtype=umbra.complex64),)),
                           (lambda x: umbra.polar(x, x), (umbra.ones(500),))):
        estimated, measured = (umbra.estimate(function, args, with_data=data) for data in (False, True))
        assert estimated.peak == pytest.approx(measured.peak, rel=0.03)


def exact(function, args, **options):
    """The estimate, which has to be what a run with data allocates and counts."""
    estimated, measured = (umbra.estimate(function, args, with_data=data, **options) for data in (False, True))
    assert (estimated.peak, estimated.flops) == (measured.peak, measured.flops)
    return estimated


def test_what_a_scan_or_a_map_does_counts_for_every_row():
    from umbra._higher_order_ops import scan
    w, rows = umbra.ones(8, 8), umbra.ones(5, 2, 8)
    step = lambda carried, row: (carried @ w + row, carried * 2)  # noqa: E731
    assert exact(lambda h, xs: scan(step, h, xs), (umbra.ones(2, 8), rows)).flops == 5 * 2 * 2 * 8 * 8
    assert exact(lambda xs: umbra._higher_order_ops.map(lambda row: (row @ w).relu(), xs), (rows,)).flops == 5 * 2 * 2 * 8 * 8


class Repeats(nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.weight = nn.Parameter(umbra.ones(8, 8))
        self.rows = rows

    def forward(self, h):
        from umbra._higher_order_ops import scan
        return scan(lambda carried, row: ((carried @ self.weight + row).tanh(), carried * 2), h, self.rows)


def test_a_step_of_training_through_a_scan_is_estimated():
    estimated, measured = (umbra.estimate(Repeats(umbra.ones(6, 2, 8)), (umbra.ones(2, 8),), training=True, with_data=data) for data in (False, True))
    assert abs(estimated.peak - measured.peak) <= 0.03 * measured.peak and estimated.flops == measured.flops > 0


def test_a_loop_counts_one_step_and_holds_the_values_of_two():
    loop = lambda n, x, w: umbra._higher_order_ops.while_loop(lambda n, x: n > 0, lambda n, x: (n - 1, x @ w), (n, x))  # noqa: E731
    estimated, measured = (umbra.estimate(loop, (umbra.tensor(3), umbra.ones(8, 8), umbra.ones(8, 8)), with_data=data) for data in (False, True))
    assert estimated.peak == measured.peak and measured.flops == 3 * estimated.flops == 3 * 2 * 8 ** 3


def test_of_branches_the_dearer_one_counts():
    w = umbra.ones(8, 8)
    assert umbra.estimate(lambda x: umbra.cond(x.sum() > 0, lambda t: t @ w, lambda t: t @ w @ w, (x,)), (w,)).flops == 2 * 2 * 8 ** 3
