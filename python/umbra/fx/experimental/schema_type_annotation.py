"""Types of results, from the schemas of the operators that give them."""
import inspect

from umbra.fx.interpreter import Transformer
from umbra.fx.operator_schemas import get_signature_for_torch_op
from umbra.fx.proxy import Proxy

__all__ = ["AnnotateTypesWithSchema"]


class AnnotateTypesWithSchema(Transformer):
    """Gives calls of functions and modules the type that their signatures say they return, where all overloads agree."""

    def __init__(self, module, annotate_functionals=True, annotate_modules=True, annotate_get_attrs=True):
        super().__init__(module)
        self.annotate_functionals, self.annotate_modules, self.annotate_get_attrs = annotate_functionals, annotate_modules, annotate_get_attrs

    def call_function(self, target, args, kwargs):
        proxy = super().call_function(target, args, kwargs)
        if self.annotate_functionals:
            self._annotate(proxy, self._result_type(target))
        return proxy

    def call_module(self, target, args, kwargs):
        proxy = super().call_module(target, args, kwargs)
        if self.annotate_modules:
            self._annotate(proxy, getattr(type(self.submodules[target]).forward, "__annotations__", {}).get("return"))
        return proxy

    def get_attr(self, target, args, kwargs):
        proxy = super().get_attr(target, args, kwargs)
        if self.annotate_get_attrs:
            self._annotate(proxy, type(self.fetch_attr(target)))
        return proxy

    @staticmethod
    def _annotate(proxy, kind):
        if isinstance(proxy, Proxy) and kind is not None:
            proxy.node.type = proxy.node.type or kind

    @staticmethod
    def _result_type(target):
        signatures = get_signature_for_torch_op(target)
        if not signatures:
            if getattr(target, "__module__", "").startswith("umbra.nn.functional"):
                found = inspect.signature(inspect.unwrap(target)).return_annotation
                return None if found is inspect.Signature.empty else found
            return None
        kinds = {signature.return_annotation for signature in signatures}
        return kinds.pop() if len(kinds) == 1 else None
