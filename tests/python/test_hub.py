"""torch.hub: what functions of a folder's hubconf.py give."""
import pytest
import umbra as torch

HUBCONF = '''
dependencies = {dependencies}
import beside


def net(n=2):
    """A layer."""
    import umbra
    return umbra.nn.Linear(n, beside.OUT)


def _hidden():
    pass


number = 3
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.hub, "_hub_dir", str(tmp_path))
    found = tmp_path / "owner_repo_main"
    found.mkdir()
    (found / "hubconf.py").write_text(HUBCONF.format(dependencies=["json"]))
    (found / "beside.py").write_text("OUT = 5\n")
    return found


def test_a_folder_is_loaded(folder):
    assert torch.hub.load(folder, "net", source="local").out_features == 5 and torch.hub.load(str(folder), "net", n=3, source="local").in_features == 3
    for model, error, message in (("nope", RuntimeError, "Cannot find callable nope in hubconf"), ("number", RuntimeError, "Cannot find callable number in hubconf"),
                                  (3, ValueError, "model should be a string of function name")):
        with pytest.raises(error, match=message):
            torch.hub.load(folder, model, source="local")
    (folder / "hubconf.py").write_text(HUBCONF.format(dependencies=["no_such_package"]))
    with pytest.raises(RuntimeError, match="Missing dependencies: no_such_package"):
        torch.hub.load(folder, "net", source="local")


def test_a_repository_that_is_there_is_used_and_another_is_not_downloaded(folder):
    assert torch.hub.list("owner/repo") == ["net"] and torch.hub.help("owner/repo:main", "net") == "A layer."
    assert torch.hub.load("owner/repo", "net", verbose=False).out_features == 5
    with pytest.raises(NotImplementedError, match="downloads nothing in Umbra: put owner/other"):
        torch.hub.load("owner/other", "net")
    with pytest.raises(ValueError, match='Unknown source: "disk"'):
        torch.hub.load(folder, "net", source="disk")
    with pytest.raises(NotImplementedError, match="force_reload=True"):
        torch.hub.list("owner/repo", force_reload=True)
