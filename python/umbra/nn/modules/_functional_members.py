"""Functions of nn.functional as members of layers' classes."""
from umbra.nn import functional


class Functional(staticmethod):
    """`_pool = Functional("max_pool2d")`. It is looked up at each call: those who count or replace functions put theirs there."""

    def __init__(self, name):
        super().__init__(getattr(functional, name))
        self.name = name

    def __get__(self, _, __owner=None):
        return getattr(functional, self.name)
