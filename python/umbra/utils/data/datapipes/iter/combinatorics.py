"""The order of samples."""
import random
from collections.abc import Sized

import umbra
from umbra.utils.data.datapipes._decorator import functional_datapipe
from umbra.utils.data.datapipes.datapipe import IterDataPipe, _T_co
from umbra.utils.data.datapipes.utils.common import _length
from umbra.utils.data.sampler import SequentialSampler

__all__ = ["SamplerIterDataPipe", "ShufflerIterDataPipe"]


class SamplerIterDataPipe(IterDataPipe[_T_co]):
    """What a sampler gives that is made for the pipe."""

    def __init__(self, datapipe, sampler=SequentialSampler, sampler_args=None, sampler_kwargs=None):
        if not isinstance(datapipe, Sized):
            raise AssertionError("Sampler class requires input datapipe implemented `__len__`")
        super().__init__()
        self.datapipe = datapipe
        self.sampler_args = () if sampler_args is None else sampler_args
        self.sampler_kwargs = {} if sampler_kwargs is None else sampler_kwargs
        self.sampler_kwargs["data_source"] = datapipe
        self.sampler = sampler(*self.sampler_args, **self.sampler_kwargs)

    def __iter__(self):
        return iter(self.sampler)

    def __len__(self):
        return _length(self, self.sampler)


@functional_datapipe("shuffle")
class ShufflerIterDataPipe(IterDataPipe[_T_co]):
    """Samples in an order drawn at random among `buffer_size` of them at a time.

    Each pass has a seed of its own: that of `set_seed`, or one that is drawn. `set_shuffle(False)` lets samples pass.
    """

    def __init__(self, datapipe, *, buffer_size=10000, unbatch_level=0):
        super().__init__()
        self._buffer = []
        if buffer_size <= 0:
            raise AssertionError("buffer_size should be larger than 0")
        self.datapipe = datapipe if unbatch_level == 0 else datapipe.unbatch(unbatch_level=unbatch_level)
        self.buffer_size = buffer_size
        self._enabled, self._seed, self._rng = True, None, random.Random()

    def set_shuffle(self, shuffle=True):
        self._enabled = shuffle
        return self

    def set_seed(self, seed):
        self._seed = seed
        return self

    def __iter__(self):
        if not self._enabled:
            yield from self.datapipe
            return
        for sample in self.datapipe:
            if len(self._buffer) < self.buffer_size:
                self._buffer.append(sample)
                continue
            place = self._rng.randint(0, self.buffer_size - 1)
            drawn, self._buffer[place] = self._buffer[place], sample
            yield drawn
        while self._buffer:
            yield self._buffer.pop(self._rng.randint(0, len(self._buffer) - 1))

    def __len__(self):
        return _length(self, self.datapipe)

    def reset(self):
        self._buffer = []
        if self._enabled:
            seed = int(umbra.empty((), dtype=umbra.int64).random_().item()) if self._seed is None else self._seed
            self._rng.seed(seed)
            self._seed = None
