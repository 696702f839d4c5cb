"""A pass over a graph module: what it needs, what it does, what holds afterwards."""
import abc
import collections

PassResult = collections.namedtuple("PassResult", ["graph_module", "modified"])


class PassBase(abc.ABC):
    """Subclasses define `call`."""

    def __call__(self, graph_module):
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module):
        """Changes a graph module; gives a PassResult."""

    def requires(self, graph_module):
        """Raises where the module is not fit for the pass."""

    def ensures(self, graph_module):
        """Raises where the pass has not done what it should."""
