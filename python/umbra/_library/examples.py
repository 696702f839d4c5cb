"""Operators on the tensors that fake ones carry: drafts of programs, and fake modes that carry real tensors, go by what the operator itself gives."""
import contextlib
import threading

import umbra
from umbra import _C
from umbra._C import Tensor
from umbra.utils._contextlib import uninterrupted
from umbra.utils._mode_utils import no_dispatch
from umbra.utils._pytree import tree_leaves, tree_map

_drafts = threading.local()


@uninterrupted
def drafting(report):
    """While it lasts, custom operators without a fake kernel, or with a wrong one, run on the tensors that fakes carry; `report(kind, data)` is told."""
    before, _drafts.report = getattr(_drafts, "report", None), report
    try:
        yield
    finally:
        _drafts.report = before


def drafted(run, report):
    """What `run()` gives while drafting. Where it meets an operator of a library's that has no fake kernel, it runs once more, with the example's for one:
    custom operators know of drafts, others are told."""
    from umbra._subclasses.fake_tensor import UnsupportedOperatorException
    with drafting(report), contextlib.ExitStack() as kernels:
        known = set()
        while True:
            try:
                return run()
            except UnsupportedOperatorException as error:
                name = str(error).partition("\n")[0]
                if name in known:
                    raise
                known.add(name)
                kernels.enter_context(_fake_from_example(name))


def draft_report():
    """What `drafting` was given; None where nobody drafts."""
    return getattr(_drafts, "report", None)


def written_arguments(overload):
    """The places and names of the arguments that an operator writes."""
    return [(i, a.name) for i, a in enumerate(overload._schema.arguments) if a.alias_info is not None and a.alias_info.is_write]


def read_tensors(overload, args, kwargs):
    """The tensors that the schema does not let the operator write, with the names of their arguments."""
    written = dict(written_arguments(overload))
    given = [(a.name, args[i] if i < len(args) else kwargs.get(a.name)) for i, a in enumerate(overload._schema.arguments) if i not in written]
    return [(name, leaf) for name, value in given for leaf in tree_leaves(value) if isinstance(leaf, Tensor) and not leaf.is_inference()]


def run_on_example(overload, args, kwargs):
    """What the operator gives for the example's arguments; None where one is not known. What it writes are copies."""
    given = tree_leaves((args, kwargs))
    real = tree_map(_of_the_example, (args, kwargs))
    if any(b is None and a is not None for a, b in zip(given, tree_leaves(real))):
        return None
    versions = [(name, leaf, leaf._version) for name, leaf in read_tensors(overload, *real)]
    with no_dispatch():
        real = _with_copies(overload, *real)
        result = overload(*real[0], **real[1])
    for name, leaf, version in versions:
        if leaf._version != version:
            raise RuntimeError(f"{overload._schema.name}: for argument '{name}': the operator's schema {overload._schema} specified that the operator does "
                               "not mutate the argument, but it wrote to it. Declare the write in the schema, as in 'Tensor(a!) name'.")
    return result


def _with_copies(overload, args, kwargs):
    """The arguments with copies of the tensors that the operator writes."""
    def copied(value):
        return tree_map(lambda leaf: leaf.clone() if isinstance(leaf, Tensor) else leaf, value)
    places, names = {i for i, _ in written_arguments(overload)}, {name for _, name in written_arguments(overload)}
    return (tuple(copied(value) if i in places else value for i, value in enumerate(args)),
            {name: copied(value) if name in names else value for name, value in kwargs.items()})


def fake_by_example(overload, args, kwargs):
    """Fake results of an operator without a fake kernel, of sizes that only the run tells; None where an argument's example is not known."""
    real = run_on_example(overload, args, kwargs)
    if real is None:
        return None
    if not all(isinstance(leaf, Tensor) for leaf in tree_leaves(real)):
        raise RuntimeError(f"propagate_real_tensors: we don't support operators that return non-Tensors. Got {overload._schema}")
    draft_report()("MISSING_FAKE_KERNEL", {"op": str(overload)})
    return tree_map(_of_unknown_sizes, real)


@contextlib.contextmanager
def _fake_from_example(name):
    """While it lasts, an operator of a library's ("space.name.overload") that has no fake kernel goes by the example."""
    space, _, rest = name.partition(".")
    name, _, overload = rest.rpartition(".")
    name += "" if overload == "default" else f".{overload}"
    found = _C._get_overload(f"{space}::{name}")
    library = umbra.library.Library(space, "FRAGMENT")

    def fake(*args, **kwargs):
        result = fake_by_example(found, args, kwargs)
        if result is None:
            raise RuntimeError(f"{found} has no fake kernel, and an argument of it has no example")
        return result

    library._register_fake(name, fake)
    try:
        yield
    finally:
        library._destroy()


def checked_by_example(overload, result, args, kwargs):
    """The fake result, or one of unknown sizes where the operator itself gives other sizes."""
    real = run_on_example(overload, args, kwargs)
    for fake, actual in zip(tree_leaves(result), tree_leaves(real)):
        wrong = _mismatch(fake, actual) if isinstance(fake, Tensor) and isinstance(actual, Tensor) else None
        if wrong:
            (expected, given), difference = wrong
            reason = f"mismatch between fake value {expected} and real value {given} "
            draft_report()("MISMATCHED_FAKE_KERNEL", {"op": str(overload), "reason": reason, "difference": difference})
            return tree_map(_of_unknown_sizes, real)
    return result


def _of_unknown_sizes(leaf):
    context = umbra.library.get_ctx()
    return umbra.empty([context.new_dynamic_size() for _ in leaf.shape], dtype=leaf.dtype, device=leaf.device)


def _of_the_example(leaf):
    """The tensor that a fake one carries, the number that a symbol is for the example; None where that is not known."""
    from umbra._subclasses.fake_tensor import FakeTensor
    if isinstance(leaf, FakeTensor):
        return leaf.real_tensor
    return _C._sym_observed(leaf) if isinstance(leaf, (_C.SymInt, _C.SymFloat, _C.SymBool)) else leaf


def _mismatch(fake, real):
    """How a fake result differs from what the operator gave: (the two values, what differs); None where it does not."""
    def tensors(*values):
        described = [f"{tensor.dtype} of {tuple(tensor.shape)}" for tensor in (fake, real)]
        return values, f"a metadata mismatch between fake tensor {described[0]} and real tensor {described[1]},  at output"

    if fake.dtype != real.dtype:
        return tensors(fake.dtype, real.dtype)
    for d, (a, b) in enumerate(zip(fake.shape, real.shape)):
        if (a if type(a) is int else a.node.hint) not in (None, b):  # a size that only the run tells may be any
            return (a, b), f"an output size mismatch between fake shape {a} and real shape {b}, at output.size({d})"
    return None if fake.dim() == real.dim() else tensors(fake.dim(), real.dim())


def refuse_mismatch(kind, data):
    """What `drafting` is told where a wrong fake kernel is an error."""
    from umbra._subclasses.fake_tensor import MetadataMismatchError
    if kind == "MISMATCHED_FAKE_KERNEL":
        raise MetadataMismatchError(f"Real tensor propagation found {data['difference']}, for func: {data['op']}")
