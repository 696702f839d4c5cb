"""Parameters as one vector, and back."""
from umbra.nn.utils.clip_grad import parameters_to_vector, vector_to_parameters  # noqa: F401
