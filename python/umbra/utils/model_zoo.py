"""torch.hub's older name for files of weights."""
from umbra.hub import load_state_dict_from_url as load_url, tqdm  # noqa: F401
