"""A search along a line for a step that meets the strong Wolfe conditions, by brackets and cubics, as Nocedal and Wright have it (algorithms 3.5, 3.6)."""
_DECREASE, _CURVATURE = 1e-4, 0.9  # how much less the loss must be, how much flatter the slope


class _Point:
    """A place on the line: how far, the loss there, the gradient, and the slope along the line."""

    def __init__(self, length, loss, gradient, slope):
        self.length, self.loss, self.gradient, self.slope = length, loss, gradient, slope


def _minimum_of_cubic(a, b, bounds=None):
    """Where the cubic through two points, with their slopes, is least, kept within bounds; their middle where it has no minimum."""
    low, high = bounds or sorted((a.length, b.length))
    if a.length > b.length:
        a, b = b, a
    bend = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.length - b.length)
    square = bend**2 - a.slope * b.slope
    if not square >= 0:  # nor where it is nan
        return (low + high) / 2.0
    root = square.sqrt()
    place = b.length - (b.length - a.length) * ((b.slope + root - bend) / (b.slope - a.slope + 2 * root))
    return min(max(place, low), high)


class StrongWolfeSearch:
    """`evaluate(length)` gives the loss and the gradient at a place on the line; `evaluations` counts its calls, `tries` of them after the first.

        search = StrongWolfeSearch(evaluate, direction, loss, gradient, slope, tolerance_change=1e-9, tries=25)
        point = search.run(1.0)     # point.length, point.loss, point.gradient
    """

    def __init__(self, evaluate, direction, loss, gradient, slope, tolerance_change, tries):
        self._evaluate, self._direction, self._tolerance, self._tries = evaluate, direction, tolerance_change, tries
        self._start = _Point(0, loss, gradient.clone(), slope)
        self.evaluations = 0

    def run(self, length):
        bracket = self._bracket(self._at(length))
        return bracket[0] if len(bracket) == 1 else self._zoom(bracket)

    def _at(self, length):
        loss, gradient = self._evaluate(length)
        self.evaluations += 1
        return _Point(length, loss, gradient.clone(), gradient.dot(self._direction))

    def _too_high(self, point):
        return point.loss > self._start.loss + _DECREASE * point.length * self._start.slope

    def _flat(self, point):
        return abs(point.slope) <= -_CURVATURE * self._start.slope

    def _bracket(self, point):
        """Goes ever further, until a good place lies between two points, or the last one is good."""
        before = self._start
        for count in range(self._tries):
            if self._too_high(point) or (count > 1 and point.loss >= before.loss):
                return [before, point]
            if self._flat(point):
                return [point]
            if point.slope >= 0:
                return [before, point]
            nearest = point.length + 0.01 * (point.length - before.length)
            length = _minimum_of_cubic(before, point, (nearest, point.length * 10))
            before, point = point, self._at(length)
        return [self._start, point]

    def _zoom(self, bracket):
        """Makes the bracket smaller around a good place. `low` is the end with the smaller loss."""
        low, high = (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)
        widest = self._direction.abs().max().item()
        stuck = False
        while self.evaluations <= self._tries and abs(bracket[1].length - bracket[0].length) * widest >= self._tolerance:
            length, stuck = self._inside(bracket, stuck)
            point = self._at(length)
            if self._too_high(point) or point.loss >= bracket[low].loss:
                bracket[high] = point
                low, high = (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)
                continue
            done = self._flat(point)
            if not done and point.slope * (bracket[high].length - bracket[low].length) >= 0:
                bracket[high] = bracket[low]
            bracket[low] = point
            if done:
                break
        return bracket[low]

    @staticmethod
    def _inside(bracket, stuck):
        """The next place to try, and whether it came close to an end: twice in a row, it is moved a tenth of the bracket away from it."""
        length = _minimum_of_cubic(*bracket)
        low, high = sorted(point.length for point in bracket)
        margin = 0.1 * (high - low)
        if min(high - length, length - low) >= margin:
            return length, False
        if stuck or length >= high or length <= low:
            return (high - margin if abs(length - high) < abs(length - low) else low + margin), False
        return length, True
