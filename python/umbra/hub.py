"""torch.hub: where files would be kept. Nothing is downloaded."""
import os
import re
from urllib.parse import urlparse  # noqa: F401  (other packages take it from here)

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # the beginning of a checksum, in the name of a file
_hub_dir = None


def get_dir():
    """The folder for downloads: TORCH_HOME/hub, by default below ~/.cache."""
    if _hub_dir is not None:
        return _hub_dir
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return os.path.join(os.path.expanduser(os.environ.get("TORCH_HOME", os.path.join(cache, "torch"))), "hub")


def set_dir(d):
    global _hub_dir
    _hub_dir = os.path.expanduser(d)


def load_state_dict_from_url(url, model_dir=None, map_location=None, progress=True, check_hash=False, file_name=None, weights_only=False):
    """What a file holds that was downloaded before; a download is refused."""
    import umbra
    folder = model_dir or os.path.join(get_dir(), "checkpoints")
    path = os.path.join(folder, file_name or os.path.basename(url.partition("?")[0]))
    if not os.path.exists(path):
        download_url_to_file(url, path, progress=progress)
    if check_hash:
        raise NotImplementedError("torch.hub.load_state_dict_from_url(check_hash=True) is not in Umbra yet")
    return umbra.load(path, map_location=map_location, weights_only=weights_only)


def download_url_to_file(url, dst, hash_prefix=None, progress=True):
    raise NotImplementedError(f"torch.hub downloads nothing in Umbra: put {url} at {dst}")


def load(repo_or_dir, model, *args, **kwargs):
    raise NotImplementedError("torch.hub.load, which runs downloaded code, is not in Umbra yet")


