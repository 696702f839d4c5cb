"""torch.hub: models of folders with a `hubconf.py`. Nothing is downloaded."""
import contextlib
import importlib.util
import os
import re
import sys
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

from umbra._options import not_built

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


@contextlib.contextmanager
def _hubconf(folder):
    """The module `hubconf.py` of a folder, whose other files it may import."""
    sys.path.insert(0, str(folder))
    try:
        spec = importlib.util.spec_from_file_location("hubconf.py", os.path.join(folder, "hubconf.py"))
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(str(folder))


def _entry(module, name):
    if not isinstance(name, str):
        raise ValueError("Invalid input: model should be a string of function name")
    missing = [package for package in getattr(module, "dependencies", None) or () if importlib.util.find_spec(package) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    function = getattr(module, name, None)
    if not callable(function):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return function


def _downloaded(github, force_reload, trust_repo, verbose, skip_validation):
    """The folder of a repository, "owner/name" or "owner/name:branch", that was downloaded before."""
    not_built("torch.hub", force_reload=(force_reload, False))
    if trust_repo is False:
        raise NotImplementedError("torch.hub(trust_repo=False), which asks before code is run, is not in Umbra yet")
    repository, _, branch = github.partition(":")
    owner, _, name = repository.partition("/")
    if not skip_validation and not (owner and name):
        raise ValueError(f"a repository is named owner/name or owner/name:branch, not {github!r}")
    for ref in [branch] if branch else ("main", "master"):
        folder = os.path.join(get_dir(), "_".join([owner, name, ref.replace("/", "_")]))
        if os.path.exists(folder):
            if verbose:
                sys.stderr.write(f"Using cache found in {folder}\n")
            return folder
    raise NotImplementedError(f"torch.hub downloads nothing in Umbra: put {github} at {folder}, or load it with source='local'")


def list(github, force_reload=False, skip_validation=False, trust_repo="check", verbose=True):  # noqa: A001
    """The functions that a repository offers."""
    with _hubconf(_downloaded(github, force_reload, trust_repo, verbose, skip_validation)) as module:
        return [name for name in dir(module) if callable(getattr(module, name)) and not name.startswith("_")]


def help(github, model, force_reload=False, skip_validation=False, trust_repo="check"):  # noqa: A001
    """What a repository says of one of its functions."""
    with _hubconf(_downloaded(github, force_reload, trust_repo, True, skip_validation)) as module:
        return _entry(module, model).__doc__


def load(repo_or_dir, model, *args, source="github", trust_repo=None, force_reload=False, verbose=True, skip_validation=False, **kwargs):
    """What a function of `hubconf.py` gives: of a folder (source="local"), or of a repository that was downloaded before."""
    source = source.lower()
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    folder = repo_or_dir if source == "local" else _downloaded(repo_or_dir, force_reload, trust_repo, verbose, skip_validation)
    with _hubconf(folder) as module:
        return _entry(module, model)(*args, **kwargs)
