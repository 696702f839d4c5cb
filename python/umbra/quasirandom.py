"""Quasi-random sequences (torch.quasirandom)."""
import umbra

__all__ = ["SobolEngine"]


def _gray(number):
    return number ^ (number >> 1)


def _steps(quasi, state, start, numbers):
    """The points that `quasi`, the one numbered `start`, comes to at these numbers: a row for each."""
    bits = _gray(numbers) ^ _gray(start)
    points = quasi.expand(numbers.numel(), -1)
    for k in range(SobolEngine.MAXBIT):
        points = points ^ (((bits >> k) & 1).unsqueeze(-1) * state[:, k])
    return points


class SobolEngine:
    """Points of a scrambled or plain Sobol sequence in the unit cube of `dimension` dimensions, of 1 to 21201.

    Scrambling shifts the digits and multiplies them by random triangular matrices; `seed` makes it repeatable.
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension, scramble=False, seed=None):
        if dimension > self.MAXDIM or dimension < 1:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        self.seed, self.scramble, self.dimension = seed, scramble, dimension
        cpu = umbra.device("cpu")
        self.sobolstate = umbra.zeros(dimension, self.MAXBIT, device=cpu, dtype=umbra.long)
        umbra.ops.aten._sobol_engine_initialize_state_(self.sobolstate, dimension)
        self.shift = umbra.zeros(dimension, device=cpu, dtype=umbra.long)
        if scramble:
            self._scramble()
        self.quasi = self.shift.clone(memory_format=umbra.contiguous_format)
        self._first_point = (self.quasi / 2**self.MAXBIT).reshape(1, -1)
        self.num_generated = 0

    def _scramble(self):
        generator = None if self.seed is None else umbra.Generator().manual_seed(self.seed)
        bits, powers = self.MAXBIT, umbra.arange(self.MAXBIT)
        digits = umbra.randint(2, (self.dimension, bits), generator=generator)
        self.shift = (digits * (1 << powers)).sum(-1)
        lower = umbra.randint(2, (self.dimension, bits, bits), generator=generator).tril()
        lower.diagonal(dim1=-2, dim2=-1).fill_(1)
        # Digits from the highest to the lowest, a column for each direction number.
        columns = (self.sobolstate.unsqueeze(1) >> powers.flip(0).reshape(1, -1, 1)) & 1
        mixed = (lower.unsqueeze(-1) * columns.unsqueeze(1)).sum(2) % 2
        self.sobolstate.copy_((mixed << powers.flip(0).reshape(1, -1, 1)).sum(1))

    def _advance(self, n):
        """The next n points after the one in `quasi`, as integers; `quasi` becomes the last."""
        if n < 0:
            raise ValueError(f"n must be non-negative, but got {n}")
        start = max(self.num_generated - 1, 0)
        points = _steps(self.quasi, self.sobolstate, start, umbra.arange(start + 1, start + n + 1))
        if n:
            self.quasi.copy_(points[-1])
        return points

    def draw(self, n=1, out=None, dtype=None):
        """The next n points, a row for each; in `out`, if it is given."""
        if dtype is None:
            dtype = umbra.get_default_dtype()
        scale = 2.0**-self.MAXBIT
        if self.num_generated == 0:
            result = self._first_point.to(dtype)
            if n != 1:
                result = umbra.cat((result, self._advance(n - 1).to(dtype) * scale), dim=-2)
        else:
            result = self._advance(n).to(dtype) * scale
        self.num_generated += n
        if out is not None:
            out.resize_as_(result).copy_(result)
            return out
        return result

    def draw_base2(self, m, out=None, dtype=None):
        """The next 2**m points. Points drawn before must leave a power of two in all: only then they are balanced."""
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1) != 0:
            raise ValueError(
                f"The balance properties of Sobol' points require n to be a power of 2. {self.num_generated} points have been "
                f"previously generated, then: n={self.num_generated}+2**{m}={total}. If you still want to do this, please use "
                "'SobolEngine.draw()' instead."
            )
        return self.draw(n=n, out=out, dtype=dtype)

    def reset(self):
        """Goes back to the first point."""
        self.quasi.copy_(self.shift)
        self.num_generated = 0
        return self

    def fast_forward(self, n):
        """Leaves out the next n points."""
        if self.num_generated == 0:
            if n > 1:
                self._skip(n - 1)
        else:
            self._skip(n)
        self.num_generated += n
        return self

    def _skip(self, n):
        start = max(self.num_generated - 1, 0)
        self.quasi.copy_(_steps(self.quasi, self.sobolstate, start, umbra.tensor([start + n]))[0])

    def __repr__(self):
        text = [f"dimension={self.dimension}"]
        if self.scramble:
            text.append("scramble=True")
        if self.seed is not None:
            text.append(f"seed={self.seed}")
        return f"{self.__class__.__name__}({', '.join(text)})"
