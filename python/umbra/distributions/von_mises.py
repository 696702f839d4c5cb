"""The von Mises distribution of angles."""
import math

import umbra
from umbra.distributions import constraints
from umbra.distributions.distribution import Distribution
from umbra.distributions.utils import broadcast_all, lazy_property

__all__ = ["VonMises"]


def _log_bessel(x, order):
    """log I(order, x), without overflow."""
    scaled = umbra.special.i0e(x) if order == 0 else umbra.special.i1e(x)
    return scaled.log() + x


class VonMises(Distribution):
    """Angles around a mean."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(self, loc, concentration, validate_args=None):
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, umbra.Size(), validate_args)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return self.concentration * umbra.cos(value - self.loc) - math.log(2 * math.pi) - _log_bessel(self.concentration, 0)

    @lazy_property
    def _loc(self):
        return self.loc.to(umbra.double)

    @lazy_property
    def _concentration(self):
        return self.concentration.to(umbra.double)

    @lazy_property
    def _proposal_r(self):
        kappa = self._concentration
        tau = 1 + (1 + 4 * kappa**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
        return umbra.where(kappa < 1e-5, 1 / kappa + kappa, (1 + rho**2) / (2 * rho))

    @umbra.no_grad()
    def sample(self, sample_shape=umbra.Size()):
        """Best and Fisher's method (1979): rejection from a wrapped Cauchy distribution, in double."""
        shape = self._extended_shape(sample_shape)
        x = umbra.empty(shape, dtype=self._loc.dtype, device=self.loc.device)
        done = umbra.zeros(shape, dtype=umbra.bool, device=self.loc.device)
        while not done.all():
            u1, u2, u3 = umbra.rand((3,) + tuple(shape), dtype=self._loc.dtype, device=self.loc.device).unbind()
            z = umbra.cos(math.pi * u1)
            f = (1 + self._proposal_r * z) / (self._proposal_r + z)
            c = self._concentration * (self._proposal_r - f)
            accept = ((c * (2 - c) - u2) > 0) | ((c / u2).log() + 1 - c >= 0)
            if accept.any():
                x = umbra.where(accept, (u3 - 0.5).sign() * f.acos(), x)
                done = done | accept
        return ((x + math.pi + self._loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)

    def expand(self, batch_shape, _instance=None):
        try:
            return super().expand(batch_shape)
        except NotImplementedError:
            validate_args = self.__dict__.get("_validate_args")
            loc, concentration = self.loc.expand(batch_shape), self.concentration.expand(batch_shape)
            return type(self)(loc, concentration, validate_args=validate_args)

    mean = mode = property(lambda self: self.loc)

    @lazy_property
    def variance(self):
        return 1 - (_log_bessel(self.concentration, 1) - _log_bessel(self.concentration, 0)).exp()
