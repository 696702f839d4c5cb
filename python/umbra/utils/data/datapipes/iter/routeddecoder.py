"""Values from files, by the ends of their names."""
import warnings

from umbra.utils.data.datapipes._decorator import functional_datapipe
from umbra.utils.data.datapipes.datapipe import IterDataPipe
from umbra.utils.data.datapipes.utils.common import _length
from umbra.utils.data.datapipes.utils.decoder import Decoder, basichandlers, extension_extract_fn, imagehandler

__all__ = ["RoutedDecoderIterDataPipe"]


@functional_datapipe("routed_decode")
class RoutedDecoderIterDataPipe(IterDataPipe):
    """(name, value) of each (name, bytes or stream). Deprecated."""

    def __init__(self, datapipe, *handlers, key_fn=extension_extract_fn):
        super().__init__()
        self.datapipe = datapipe
        self.decoder = Decoder(*(handlers or (basichandlers, imagehandler("torch"))), key_fn=key_fn)
        warnings.warn(f"`{type(self).__name__}()` and its functional API `.routed_decode()` are deprecated since 1.12 and will be removed in 1.13.\n"
                      "See https://github.com/pytorch/data/issues/163 for details.", FutureWarning, stacklevel=2)

    def add_handler(self, *handler):
        self.decoder.add_handler(*handler)

    def __iter__(self):
        for sample in self.datapipe:
            yield sample[0], self.decoder(sample)[sample[0]]

    def __len__(self):
        return _length(self, self.datapipe)
