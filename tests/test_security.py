"""What SECURITY.md promises of the whole: no network, no pickle, nothing evaluated from text."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

from in_one import in_one

import lagpu

ROOT = Path(lagpu.__file__).parent
SOURCES = {str(path.relative_to(ROOT)): path for path in sorted(ROOT.rglob("*.py"))}
NEVER = {"pickle", "cPickle", "marshal", "shelve", "dill", "joblib", "cloudpickle"}
LOADERS = ("eval", "exec", "sp.load_npz", "scipy.sparse.load_npz", "np.fromfile")
#: The test of an ``if`` in the author's loop, which Python runs next: names, numbers, comparisons.
OWN_TEST = "eval(test, outer, local)"
#: The lines of the author's ``while q.nvals:``, compiled from the source that runs.
OWN_LINES = "exec(found.code, frame.f_globals, local)"
NETWORK = {"socket", "ssl", "http", "urllib", "ftplib", "smtplib", "requests", "httpx", "asyncio"}


@in_one("path", SOURCES.values())
def test_no_pickle_no_network_no_evaluated_text(path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name.split(".")[0] for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [(node.module or "").split(".")[0]]
        network = NETWORK if path.name != "fetch.py" else set()
        assert not {*names} & (NEVER | network), f"{path}:{node.lineno}"
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        if (ast.unparse(node), path.name) in ((OWN_TEST, "purity.py"), (OWN_LINES, "loop.py")):
            continue
        assert called not in LOADERS, f"{path}:{node.lineno}"
        if called in ("np.load", "np.save", "np.savez", "np.lib.format.read_array"):
            how = {word.arg: ast.unparse(word.value) for word in node.keywords}
            assert how.get("allow_pickle") == "False", f"{path}:{node.lineno}"


OFFLINE = """
import sys

def refuse(event, args):
    if event.startswith(("socket.", "urllib.", "http.", "ftplib.", "smtplib.")):
        raise AssertionError(f"{event} {args}")

sys.addaudithook(refuse)
import socket
try:
    socket.socket()
except AssertionError:
    print("bites")
from lagpu.cli import main
graph, result, trace = sys.argv[1:]
assert main(["generate", "kron:6", graph]) == 0
files = ["--save", result, "--trace", trace]
assert main(["bfs", graph, "-s", "1", "-b", "sim", "--check", *files]) == 0
assert main(["check", graph, "-s", "1", "--levels", result]) == 0
assert main(["crosscheck", "bfs", graph, "-s", "1", "--backends", "cpu,sim"]) == 0
"""


def test_no_network(tmp_path):
    files = [str(tmp_path / name) for name in ("graph.npz", "result.npz", "trace.html")]
    command = [sys.executable, "-c", OFFLINE, *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("bites\n")
