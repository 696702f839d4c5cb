"""What help() says of the classes that C++ makes."""
from umbra import _C

_C.Tensor.__doc__ = """Elements of one type in a grid of any number of dimensions, on a device; with a history where gradients are asked for.

    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
"""
_C.Size.__doc__ = """The sizes of a tensor: a tuple of integers.

    >>> torch.ones(2, 3).shape.numel()
    6
"""
_C.device.__doc__ = """Where a tensor lies: a type, and the number of the device where there are several.

    >>> torch.device("cuda:1").index
    1
"""
_C.dtype.__doc__ = """The type of a tensor's elements.

    >>> torch.float32.itemsize, torch.int64.is_floating_point
    (4, False)
"""
_C.layout.__doc__ = "How a tensor keeps its elements: torch.strided, or one of the sparse ones (torch.sparse_coo)."
_C.memory_format.__doc__ = "In which order dimensions lie in memory: torch.contiguous_format, torch.channels_last and the like."
_C.Generator.__doc__ = """A source of random numbers with a state of its own.

    >>> generator = torch.Generator().manual_seed(0)
    >>> torch.rand(2, generator=generator).shape
    torch.Size([2])
"""
_C.finfo.__doc__ = """The limits of a type of floats.

    >>> torch.finfo(torch.float16).max
    65504.0
"""
_C.iinfo.__doc__ = """The limits of a type of integers.

    >>> torch.iinfo(torch.int8).min
    -128
"""
_C.UntypedStorage.__doc__ = """The bytes behind a tensor, which several tensors may share.

    >>> x = torch.ones(2)
    >>> x.view(2, 1).untyped_storage().data_ptr() == x.untyped_storage().data_ptr(), x.untyped_storage().nbytes()
    (True, 8)
"""
_C.SymInt.__doc__ = "An integer of a program that is being captured: an expression of symbols. Comparing it leaves a guard."
_C.SymFloat.__doc__ = "A float of a program that is being captured: an expression of symbols."
_C.SymBool.__doc__ = "A condition of a program that is being captured. Asking for its truth leaves a guard."
_C.OutOfMemoryError.__doc__ = "There is not as much memory as a tensor asks for."
_C.Graph.__doc__ = """A program as a list of nodes: inputs, calls, and what it gives.

    >>> graph = torch.fx.Graph()
    >>> graph.output(graph.call_function(torch.relu, (graph.placeholder("x"),)))
    output
    >>> [node.op for node in graph.nodes]
    ['placeholder', 'call_function', 'output']
"""
_C.Node.__doc__ = "One step of a graph: its kind (`op`), what is called (`target`), with what (`args`, `kwargs`), and what is known of its value (`meta`)."
