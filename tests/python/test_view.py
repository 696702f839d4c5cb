"""The page that shows a program: what it holds, and how it behaves in a real browser."""
import html
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest
import umbra as torch
from built import PROGRAM, ROOT
from umbra.export import Dim, export, save

PLAYWRIGHT = next((str(p) for p in (ROOT / "viewer", pathlib.Path("/opt/viewer")) if (p / "node_modules" / "playwright-core").exists()), None)
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.up = torch.nn.Linear(width, 2 * width)
        self.down = torch.nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


class Net(torch.nn.Module):
    def __init__(self, width=8, blocks=3):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block(width) for _ in range(blocks))
        self.head = torch.nn.Linear(width, 4)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


@pytest.fixture(scope="module")
def program():
    return export(Net(), (torch.randn(3, 8),), dynamic_shapes={"x": {0: Dim("batch", max=64)}})


def data_of(page):
    return json.loads(re.search(r'<script id="program" type="application/json">(.*?)</script>', page, re.S)[1])


def test_nodes_have_shapes_bytes_operations_and_lines(program):
    data = data_of(program._program.page("net"))
    nodes = {node["name"]: node for node in data["nodes"]}
    linear = nodes["linear"]
    assert linear["values"] == [{"dtype": "f32", "shape": "[s77, 16]", "bytes": 3 * 16 * 4}]
    assert linear["flops"] == 2 * 3 * 8 * 16
    assert "test_view.py" in data["sources"][linear["source"]]
    assert [data["nodes"][i]["name"] for i in linear["in"]] == ["layer_norm", "p_blocks_0_up_weight", "p_blocks_0_up_bias"]
    assert nodes["p_head_weight"]["weight"] == "head.weight"


def test_nodes_lie_in_the_modules_that_made_them(program):
    data = data_of(program._program.page("net"))
    def path(module):
        return data["modules"][module]["path"]
    by_name = {node["name"]: path(node["module"]) for node in data["nodes"]}
    assert by_name["linear"] == "blocks.0.up" and by_name["gelu_1"] == "blocks.1" and by_name["linear_6"] == "head"
    up = next(m for m in data["modules"] if m["path"] == "blocks.0.up")
    assert up["name"] == "up" and path(up["parent"]) == "blocks.0"


def test_memory_sizes_and_totals(program):
    data = data_of(program._program.page("net"))
    assert data["sizes"] == [{"name": "s77", "range": "[0, 64]", "value": 3}]
    assert data["flops"] == sum(node.get("flops", 0) for node in data["nodes"])
    assert max(bytes for bytes, _ in data["memory"]) == data["peak"] > data["weights"] > 0
    assert all(data["nodes"][node]["op"] == "call" for _, node in data["memory"] if node >= 0)


def test_subgraphs_take_the_operands_and_give_the_result():
    class Either(torch.nn.Module):
        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos() + 1, (x,))
    data = data_of(export(Either(), (torch.ones(3),))._program.page("either"))
    nodes = data["nodes"]
    cond = next(node for node in nodes if "cond" in node["target"])
    outputs = [nodes[i] for i in cond["in"] if nodes[i]["op"] == "output"]
    assert [data["modules"][node["module"]]["path"] for node in outputs] == ["true_graph_0", "false_graph_0"]
    inner = [node for node in nodes if node["op"] == "placeholder" and node["module"] != 0]
    assert [[nodes[i]["name"] for i in node["in"]] for node in inner] == [["x"], ["x"]]
    assert data["peak"] > 0 and cond["op"] == "call"


def test_a_program_that_cannot_run_without_data_is_shown_without_costs():
    class Positive(torch.nn.Module):
        def forward(self, x):
            return x[x > 0] * 2
    data = data_of(export(Positive(), (torch.randn(5),))._program.page("positive"))
    assert "no_cost" in data and "memory" not in data and len(data["nodes"]) > 3


def test_names_from_files_cannot_leave_their_place(program):
    page = program._program.page("</script><script>alert(1)</script>")
    assert "alert(1)</script>" not in page and page.count("</script>") == 2


def test_notebooks_show_the_page_in_a_frame(program):
    text = program._repr_html_()
    assert text.startswith("<iframe srcdoc=") and text.count("<iframe") == 1
    assert data_of(html.unescape(text))["title"] == "ExportedProgram"


@pytest.mark.skipif(not PROGRAM.exists(), reason="the command-line program is not built")
def test_the_command_writes_the_page(program, tmp_path):
    save(program, tmp_path / "net.pt2")
    def umbra(*arguments):
        return subprocess.run([str(PROGRAM), "view", *map(str, arguments)], capture_output=True, text=True, env={**os.environ, "TMPDIR": str(tmp_path), "DISPLAY": "", "WAYLAND_DISPLAY": ""}, check=False)
    done = umbra(tmp_path / "net.pt2", "--size", "32", "-o", tmp_path / "page.html")
    assert done.returncode == 0 and done.stdout.strip() == str(tmp_path / "page.html"), done.stderr
    data = data_of((tmp_path / "page.html").read_text())
    assert data["title"] == "net.pt2" and data["sizes"][0]["value"] == 32
    done = umbra(tmp_path / "net.pt2")
    assert done.returncode == 0 and pathlib.Path(done.stdout.strip()).read_text().startswith("<!doctype html>")
    assert "4096" not in umbra(tmp_path / "net.pt2", "--size", "99").stdout
    assert umbra(tmp_path / "net.pt2", "--size", "99").returncode == 1


def large_program():
    """Ten thousand calls in modules of modules."""
    class Stage(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = torch.nn.ModuleList(Part() for _ in range(20))

        def forward(self, x):
            for part in self.parts:
                x = part(x)
            return x

    class Part(torch.nn.Module):
        def forward(self, x):
            for _ in range(10):
                x = torch.relu(x + 1).mul(2).sub(x).view(4, 2)
            return x

    class Large(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.stages = torch.nn.ModuleList(Stage() for _ in range(10))

        def forward(self, x):
            for stage in self.stages:
                x = stage(x)
            return x
    return export(Large(), (torch.ones(4, 2),))


@pytest.mark.skipif(not shutil.which("node"), reason="node is not here")
@pytest.mark.skipif(not PLAYWRIGHT, reason="playwright-core is not here (npm ci in viewer/)")
@pytest.mark.skipif(not CHROMIUM, reason="no Chromium here")
def test_in_a_browser(program, tmp_path):
    (tmp_path / "net.html").write_text(program._program.page("net"))
    (tmp_path / "large.html").write_text(large_program()._program.page("large"))
    (tmp_path / "frame.html").write_text(f"<!doctype html><body>{program._repr_html_()}</body>")
    done = subprocess.run(["node", str(ROOT / "tests/view/browser.mjs"), *(str(tmp_path / f"{name}.html") for name in ("net", "large", "frame"))],
                          capture_output=True, text=True, env={**os.environ, "PLAYWRIGHT": PLAYWRIGHT, "CHROMIUM": CHROMIUM}, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(not shutil.which("node") or not (ROOT / "viewer/node_modules/esbuild").exists(), reason="the viewer's tools are not here (npm ci in viewer/)")
def test_the_page_that_is_checked_in_is_made_from_its_sources(tmp_path):
    shutil.copytree(ROOT / "viewer", tmp_path / "viewer", ignore=shutil.ignore_patterns("node_modules", "dist"))
    (tmp_path / "viewer/node_modules").symlink_to(ROOT / "viewer/node_modules")
    subprocess.run(["node", "build.mjs"], cwd=tmp_path / "viewer", check=True, capture_output=True)
    assert (tmp_path / "viewer/dist/viewer.html").read_text() == (ROOT / "viewer/dist/viewer.html").read_text()
