"""Pruning: masks over parameters, one after another, and what is left of them."""
import pytest

import umbra as torch
from umbra.nn import Linear
from umbra.nn.utils import prune


def masked(weight, method, *args, **kwargs):
    """The mask that a method gives a layer of these weights."""
    layer = Linear(len(weight[0]), len(weight))
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(weight))
    method(layer, "weight", *args, **kwargs)
    return layer, layer.weight_mask.tolist()


def test_the_elements_nearest_to_zero_go():
    layer, mask = masked([[1.0, -3.0], [0.5, 2.0]], prune.l1_unstructured, amount=2)
    assert mask == [[0, 1], [0, 1]] and layer.weight.tolist() == [[0, -3], [0, 2]]
    assert [name for name, _ in layer.named_parameters()] == ["bias", "weight_orig"]


def test_scores_may_come_from_elsewhere():
    scores = torch.tensor([[4.0, 3.0], [2.0, 1.0]])
    assert masked([[1.0, -3.0], [0.5, 2.0]], prune.l1_unstructured, amount=0.5, importance_scores=scores)[1] == [[1, 1], [0, 0]]


def test_slices_of_the_least_norm_go():
    assert masked([[1.0, -3.0], [0.5, 2.0]], prune.ln_structured, amount=1, n=2, dim=0)[1] == [[1, 1], [0, 0]]
    assert masked([[1.0, -3.0], [0.5, 2.0]], prune.ln_structured, amount=1, n=1, dim=1)[1] == [[0, 1], [0, 1]]


def test_a_second_method_prunes_what_the_first_has_left():
    layer, _ = masked([[1.0, -3.0], [0.5, 2.0]], prune.l1_unstructured, amount=1)
    prune.l1_unstructured(layer, "weight", amount=1)
    assert layer.weight_mask.tolist() == [[0, 1], [0, 1]]
    (hook,) = layer._forward_pre_hooks.values()
    assert isinstance(hook, prune.PruningContainer) and len(hook) == 2


def test_random_masks_follow_the_generator():
    def drawn():
        torch.manual_seed(3)
        return [prune.RandomUnstructured(0.5).compute_mask(torch.ones(2, 4), torch.ones(2, 4)),
                prune.RandomStructured(1, dim=1).compute_mask(torch.ones(2, 4), torch.ones(2, 4))]
    elements, columns = drawn()
    assert elements.sum() == 4 and columns.sum() == 6 and torch.equal(columns[0], columns[1])
    assert all(torch.equal(a, b) for a, b in zip(drawn(), (elements, columns)))


def test_several_parameters_as_one():
    a, b = (masked(weight, prune.identity)[0] for weight in ([[4.0, 1.0]], [[3.0, 2.0]]))
    prune.global_unstructured([(a, "weight"), (b, "weight")], prune.L1Unstructured, amount=2)
    assert a.weight_mask.tolist() == [[1, 0]] and b.weight_mask.tolist() == [[1, 0]]


def test_pruned_elements_get_no_gradient_and_stay_zero_when_the_mask_goes():
    layer, _ = masked([[1.0, -3.0], [0.5, 2.0]], prune.l1_unstructured, amount=2)
    layer(torch.ones(1, 2)).sum().backward()
    assert layer.weight_orig.grad.tolist() == [[0, 1], [0, 1]]
    assert prune.is_pruned(layer)
    prune.remove(layer, "weight")
    assert layer.weight.tolist() == [[0, -3], [0, 2]] and not prune.is_pruned(layer)
    assert sorted(layer.state_dict()) == ["bias", "weight"]


@pytest.mark.parametrize("amount, error", [(1.5, ValueError), (-1, ValueError), (100, ValueError), ("many", TypeError)])
def test_an_amount_that_makes_no_sense_leaves_the_layer_as_it_was(amount, error):
    layer = Linear(2, 2)
    with pytest.raises(error, match="amount"):
        prune.l1_unstructured(layer, "weight", amount)
    assert [name for name, _ in layer.named_parameters()] == ["weight", "bias"] and not prune.is_pruned(layer)
