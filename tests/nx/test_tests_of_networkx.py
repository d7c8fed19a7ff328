"""NetworkX' own tests, through the backend: each function that is claimed passes its tests."""

import json
from pathlib import Path

import networkx as nx
import pytest
from networkx_door import run

import _lagpu_networkx

HERE = Path(nx.__file__).parent
QUICK = ("tests/test_core.py", "link_analysis/tests/test_pagerank.py")
FILES = (
    *QUICK,
    "bipartite/tests/test_basic.py",
    "centrality/tests/test_betweenness_centrality.py",
    "centrality/tests/test_closeness_centrality.py",
    "centrality/tests/test_harmonic_centrality.py",
    "components/tests",
    "shortest_paths/tests",
    "tests/test_cluster.py",
    "tests/test_dag.py",
    "tests/test_distance_measures.py",
    "tests/test_mis.py",
    "traversal/tests",
)
# Of 500 cases of one test of bounds, which take minutes through any backend, a few.
SOME = "not test_use_bounds_on_off_consistency or 0.4-10-0 or 0.8-12-3"


def passed(folder, files):
    """Run files of NetworkX' tests: what `networkx_counts` has counted."""
    counts = folder / "counts.json"
    done = run(
        folder,
        *("-m", "pytest", "-q", "-p", "networkx_counts", "-p", "no:cacheprovider"),
        *("-c", "/dev/null", "--rootdir", str(HERE), "-k", SOME),
        *(str(HERE / "algorithms" / file) for file in files),
        NETWORKX_TEST_BACKEND="lagpu",
        NETWORKX_FALLBACK_TO_NX="True",
        NETWORKX_COUNTS=str(counts),
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    assert "xpassed" not in done.stdout
    return json.loads(counts.read_text())


def test_a_few_files(tmp_path):
    found = passed(tmp_path, QUICK)
    assert found["tests"]["answered"] > 20
    assert found["calls"]["pagerank"]["answered"] > 10


@pytest.mark.ci
def test_the_files_of_all_functions(tmp_path):
    found = passed(tmp_path, FILES)
    print(found)
    answered = {name for name, calls in found["calls"].items() if calls.get("answered")}
    assert answered == set(_lagpu_networkx.info()["functions"])
