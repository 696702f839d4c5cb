"""What trials are given by: the probability of success, or its log odds."""
from umbra.distributions.utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits


class Odds:
    """Either was given; the other follows from it."""

    @lazy_property
    def logits(self):
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self):
        return logits_to_probs(self.logits, is_binary=True)

    def _take(self, probs, logits, *others):
        """Keeps the one that is given; it and what else there is, broadcast together."""
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        *others, given = broadcast_all(*others, logits if probs is None else probs)
        if probs is None:
            self.logits = given
        else:
            self.probs = given
        return (*others, given)


class Trial(Odds):
    """With the parameter that was given at hand."""

    def _take_parameter(self, probs, logits, total_count=None):
        if total_count is None:
            (self._param,) = self._take(probs, logits)
        else:
            count, self._param = self._take(probs, logits, total_count)
            self.total_count = count.type_as(self._param)

    def _parameters(self, batch_shape):
        """The parameters, expanded."""
        named = {n: self.__dict__[n].expand(batch_shape) for n in ("total_count", "probs", "logits") if n in self.__dict__}
        return {**named, "_param": named["probs" if "probs" in named else "logits"]}

    def _new(self, *args, **kwargs):
        return self._param.new(*args, **kwargs)

    @property
    def param_shape(self):
        return self._param.size()
