"""The base of all distributions."""
import warnings

import umbra
from umbra.distributions import constraints
from umbra.distributions.utils import lazy_property

__all__ = ["Distribution"]


def _not_built(method):
    def refuse(self, *args, **kwargs):
        raise NotImplementedError(f"{type(self).__name__}.{method} is not implemented")
    return refuse


class Distribution:
    """A distribution over values of `event_shape`, in a batch of `batch_shape` independent ones."""

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value):
        """Whether parameters and values are checked where nothing else is said."""
        if value not in (True, False):
            raise ValueError
        Distribution._validate_args = value

    def __init__(self, batch_shape=umbra.Size(), event_shape=umbra.Size(), validate_args=None):
        self._batch_shape, self._event_shape = batch_shape, event_shape
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()

    def _check_parameters(self):
        try:
            limits = self.arg_constraints
        except NotImplementedError:
            limits = {}
            warnings.warn(f"{self.__class__} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or initialize the "
                          "distribution with `validate_args=False` to turn off validation.", stacklevel=3)
        for name, constraint in limits.items():
            if constraints.is_dependent(constraint):
                continue
            if name not in self.__dict__ and isinstance(getattr(type(self), name), lazy_property):
                continue  # follows from another parameter
            value = getattr(self, name)
            valid = constraint.check(value)
            if not umbra._is_all_true(valid):
                raise ValueError(f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution {self!r} "
                                 f"to satisfy the constraint {constraint!r}, but found invalid values:\n{value}")

    def expand(self, batch_shape, _instance=None):
        """The same distribution with its batch broadcast to another shape."""
        raise NotImplementedError

    @property
    def batch_shape(self):
        return self._batch_shape

    @property
    def event_shape(self):
        return self._event_shape

    arg_constraints = property(_not_built("arg_constraints"), doc="The constraint of each parameter, by name.")
    support = property(_not_built("support"), doc="The constraint that values satisfy.")
    mean = property(_not_built("mean"))
    variance = property(_not_built("variance"))

    @property
    def mode(self):
        raise NotImplementedError(f"{self.__class__} does not implement mode")

    @property
    def stddev(self):
        return self.variance.sqrt()

    def sample(self, sample_shape=umbra.Size()):
        """Values without gradients, `sample_shape` of them."""
        with umbra.no_grad():
            return self.rsample(sample_shape)

    def sample_n(self, n):
        warnings.warn("`sample_n(n)` will be deprecated. Use `sample((n,))` instead.", FutureWarning, stacklevel=2)
        return self.sample(umbra.Size((n,)))

    rsample = _not_built("rsample")
    log_prob = _not_built("log_prob")
    cdf = _not_built("cdf")
    icdf = _not_built("icdf")
    enumerate_support = _not_built("enumerate_support")
    entropy = _not_built("entropy")

    def perplexity(self):
        return umbra.exp(self.entropy())

    def _extended_shape(self, sample_shape=umbra.Size()):
        return umbra.Size(tuple(sample_shape) + tuple(self._batch_shape) + tuple(self._event_shape))

    def _validate_sample(self, value):
        """Refuses what is no value of this distribution."""
        if not isinstance(value, umbra.Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        start = value.dim() - len(self._event_shape)
        if value.size()[start:] != self._event_shape:
            raise ValueError(f"The right-most size of value must match event_shape: {value.size()} vs {self._event_shape}.")
        expected = tuple(self._batch_shape) + tuple(self._event_shape)
        for i, j in zip(reversed(value.size()), reversed(expected)):
            if i != 1 and j != 1 and i != j:
                raise ValueError(f"Value is not broadcastable with batch_shape+event_shape: {value.size()} vs {umbra.Size(expected)}.")
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(f"{self.__class__} does not define `support` to enable sample validation. Please initialize the distribution with "
                          "`validate_args=False` to turn off validation.", stacklevel=2)
            return
        if support is None:
            raise AssertionError("support is None")
        if not umbra._is_all_true(support.check(value)):
            raise ValueError(f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the support ({support!r}) "
                             f"of the distribution {self!r}, but found invalid values:\n{value}")

    def _get_checked_instance(self, cls, _instance=None):
        """What `expand` fills; a subclass with parameters of its own has to bring its own `expand`."""
        if _instance is None and type(self).__init__ != cls.__init__:
            raise NotImplementedError(f"Subclass {self.__class__.__name__} of {cls.__name__} that defines a custom __init__ method must also define "
                                      "a custom .expand() method.")
        return self.__new__(type(self)) if _instance is None else _instance

    def _expanded(self, cls, batch_shape, _instance, parameters, event_shape=umbra.Size()):
        """An instance with these parameters of the batch's new shape, of which nothing is checked again."""
        new = self._get_checked_instance(cls, _instance)
        for name, value in parameters.items():
            setattr(new, name, value)
        super(cls, new).__init__(umbra.Size(batch_shape), event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def __repr__(self):
        names = [k for k in self.arg_constraints if k in self.__dict__]
        shown = [f"{n}: {self.__dict__[n] if self.__dict__[n].numel() == 1 else self.__dict__[n].size()}" for n in names]
        return self.__class__.__name__ + "(" + ", ".join(shown) + ")"
