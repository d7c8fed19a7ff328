"""The NetworkX backend as an installed lagpu has it, whatever is installed here."""

import os
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import networkx as nx
import pytest
from networkx.utils import Config
from networkx.utils import backends as dispatch

import _lagpu_networkx
import lagpu
from lagpu.nx import interface

ROOT = Path(__file__).parents[2]  # of the repository; lagpu may be installed elsewhere
PACKAGES = Path(lagpu.__file__).parent.parent


def entry_points():
    """Return the entry points for NetworkX of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    found = project["entry-points"]
    return {group: found[group] for group in ("networkx.backends", "networkx.backend_info")}


def installed(folder):
    """Return the environment of a process in which lagpu is installed with its entry points."""
    info = folder / f"lagpu-{lagpu.__version__}.dist-info"
    info.mkdir(exist_ok=True)
    name = f"Metadata-Version: 2.1\nName: lagpu\nVersion: {lagpu.__version__}\n"
    (info / "METADATA").write_text(name)
    lines = [
        f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in points.items())
        for group, points in entry_points().items()
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))
    path = os.pathsep.join([str(folder), str(PACKAGES), str(Path(__file__).parent), *sys.path])
    kept = {k: v for k, v in os.environ.items() if not k.startswith("NETWORKX")}
    return kept | {"PYTHONPATH": path}


def run(folder, *command, **settings):
    """Run Python in such a process."""
    return subprocess.run(
        [sys.executable, *command],
        env=installed(folder) | settings,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


@pytest.fixture
def door(monkeypatch):
    """NetworkX knows the backend in this process; the warning about its cache is off."""
    info = _lagpu_networkx.info()
    module = entry_points()["networkx.backends"]["lagpu"]
    point = EntryPoint("lagpu", module, "networkx.backends")
    monkeypatch.setitem(dispatch.backends, "lagpu", point)
    monkeypatch.setitem(dispatch.backend_info, "lagpu", info)
    monkeypatch.setitem(dispatch._loaded_backends, "lagpu", interface)
    dispatching = dispatch._dispatchable._call_if_any_backends_installed
    monkeypatch.setattr(dispatch._dispatchable, "__call__", dispatching)
    monkeypatch.setattr(nx.config, "backends", Config(lagpu=Config(**info["default_config"])))
    monkeypatch.setattr(nx.config, "warnings_to_ignore", {"cache"})
    return interface
