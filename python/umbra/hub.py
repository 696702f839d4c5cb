"""torch.hub: where files would be kept. Nothing is downloaded."""
import os
import re
from urllib.parse import urlparse  # noqa: F401  (other packages take it from here)

try:
    from tqdm import tqdm  # noqa: F401  (and this)
except ImportError:
    class tqdm:
        """A bar of progress that says nothing; the package tqdm has the real one."""

        def __init__(self, total=None, disable=False, unit=None, *args, **kwargs):
            self.total, self.disable, self.n = total, disable, 0

        def update(self, n):
            self.n += n

        def set_description(self, *args, **kwargs):
            """Nothing is shown."""

        def close(self):
            """Nothing was shown."""

        def __enter__(self):
            return self

        def __exit__(self, *exception):
            return None

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # the beginning of a checksum, in the name of a file
_hub_dir = None


def _get_torch_home():
    """The folder for all that is kept: TORCH_HOME, by default below ~/.cache."""
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.environ.get("TORCH_HOME", os.path.join(cache, "torch")))


def get_dir():
    """The folder for downloads: TORCH_HOME/hub."""
    return os.path.join(_get_torch_home(), "hub") if _hub_dir is None else _hub_dir


def set_dir(d):
    global _hub_dir
    _hub_dir = os.path.expanduser(d)


def load_state_dict_from_url(url, model_dir=None, map_location=None, progress=True, check_hash=False, file_name=None, weights_only=False):
    """What a file holds that was downloaded before; a download is refused."""
    import umbra
    folder = model_dir or os.path.join(get_dir(), "checkpoints")
    path = os.path.join(folder, file_name or os.path.basename(url.partition("?")[0]))
    if not os.path.exists(path):
        prefix = HASH_REGEX.search(os.path.basename(path)) if check_hash else None
        download_url_to_file(url, path, prefix and prefix.group(1), progress)
    return umbra.load(path, map_location=map_location, weights_only=weights_only)


def download_url_to_file(url, dst, hash_prefix=None, progress=True):
    raise NotImplementedError(f"torch.hub downloads nothing in Umbra: put {url} at {dst}")


def load(repo_or_dir, model, *args, **kwargs):
    raise NotImplementedError("torch.hub.load, which runs downloaded code, is not in Umbra yet")


