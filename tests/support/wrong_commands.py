"""Wrong invocations of every command, and the files that they name."""

from __future__ import annotations

import gzip
import shlex
from pathlib import Path

import numpy as np

FILES = {
    "empty": b"",
    "binary": bytes(range(256)),
    "words": b"a b\nc d\n",
    "cut.gz": gzip.compress(b"0 1\n" * 99, mtime=0)[:-9],
    "graph.txt": b"0 1\n1 0\n1 2\n2 1\n",
    "wide.mtx": b"%%MatrixMarket matrix coordinate pattern general\n3 4 1\n1 1\n",
    "nothing.mtx": b"%%MatrixMarket matrix coordinate pattern general\n0 0 0\n",
    "weight_nan.txt": b"0 1 nan\n",
    "negative.txt": b"0 1 -1.5\n1 2 1\n2 0 -3\n",
    "levels.txt": b"0 0\n1 1\n2 2\n",
    "nan.txt": b"0 0\n1 nan\n2 2\n",
    "comments.txt": b"# nothing\n",
    "three.txt": b"0 0 0\n",
    "large.txt": b"0 0\n99999999999999999999 1\n",
    "minus.txt": b"-1 0\n",
    "twice.txt": b"0 0\n0 0\n1 1\n2 2\n",
    "zero.txt": b"0 zero\n",
    "outside.txt": b"0 0\n7 1\n",
    "text.npz": b"0 0\n",
    "cut.npz": b"PK\x03\x04",
}
ARCHIVES = {
    "nan.npz": (np.arange(3), np.array([0, np.nan, 2])),
    "letters.npz": (np.arange(3), np.array(["a", "b", "c"])),
    "complex.npz": (np.arange(3), np.array([1j, 2, 3])),
    "dates.npz": (np.arange(3), np.array([1, 2, 3], "M8[s]")),
    "records.npz": (np.arange(3), np.zeros(3, "i4,f4")),
    "objects.npz": (np.arange(3), np.array([{}, {}, {}], object)),
    "fractions.npz": (np.arange(3.0), np.arange(3)),
    "short.npz": (np.arange(3), np.arange(2)),
    "flat.npz": (np.arange(4).reshape(2, 2), np.arange(4).reshape(2, 2)),
    "beyond.npz": (np.array([0, 1, 2**64 - 1], np.uint64), np.arange(3)),
}


def write_files(folder: Path) -> None:
    """Write the files, and two folders."""
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    for name, (indices, values) in ARCHIVES.items():
        np.savez(folder / name, indices=indices, values=values)
    (folder / "folder").mkdir()
    (folder / "folder.npz").mkdir()


# Each command with what it needs besides a graph, and whether it saves a vector.
ALGORITHMS = {
    "bfs": ("-s 0", True), "sssp": ("-s 0", True), "path": ("-s 0 -t 1", False),
    "pagerank": ("", True), "bc": ("", True), "closeness": ("", True), "components": ("", True),
    "diameter": ("", False), "bipartite": ("", True), "cores": ("", True), "triangles": ("", True),
    "order": ("", True), "independent": ("", True),
}  # fmt: skip
GRAPHS = ["missing.mtx", "kron:-1", "wide.mtx", "nothing.mtx"]
ALL_GRAPHS = """
folder empty binary words cut.gz '' kron: kron:99 kron:1:2:3 nograph:5 /proc/self/mem
/dev/zero kron:x kron:1.5 'kron: 5' 'kron:5 ' KRON:5 kron grid:5 grid:0x5 grid:5x grid:-1x5 path:0
path:-1 path:1e3 path:nan cycle:2 star:0 complete:0 complete:999999999 mycielskian:99 mycielskian:0
road:0 delaunay:0 delaunay:99 urand:99 urand:5:0 kron:5:0 kron:5:99999999999 : kron:: kron:5: a:b
path:99999999999999999999 grid:99999999x99999999 kron:99999999999999999999999999999999 kron:5x5
gnm:3 gnm:3:7
"""
OPTIONS = """
--blah
more
--seed -1
--seed x
--directed
-b tpu
-b ''
-b cpu --kernel push_edge
-b cpu --policy ''
"""
SAVING = ["--save a.bmp", "--save no/a.npz", "--save ''", "--save folder.npz"]

OWN = {
    "bfs path:3 -b cpu": """
-s -1; -s 3; -s x; -s 1.5; -s nan; -s inf; -s ''; -s 99999999999999999999999; -s 0 --sources 1
-s 0 --each; --sources ''; --sources ,; --sources 0,,1; --sources 0,x; --sources 0,3; --sources -1
--sources 0,0 --each; --sources '0 1'; --each; ; --sources 0,1 --output parents; -s 0 --output ''
--sources 0,1 --output paths --each; --sources 0,1 --step a.html; -s 0 --output x; -s 0 --seed 1
-s 0 --trace a.txt; -s 0 --trace ''; -s 0 --step ''; -s 0 --step a.json; -s 0 --trace no/a.html
-s 0 --trace a.html --step ./a.html; -s 0 --trace folder; --sources 0,1 --each --save a.csv
-s 0 --json=1; -s 0 --check=yes; -s 0 --save a.mtx; -s 0 -s; -s 0 --undirected
""",
    "bfs path:3 -s 0 -b sim": """
--kernel x; --policy x; --kernel push_edge --policy auto; --kernel ''; --policy ''
""",
    "sssp -b cpu": """
graph.txt -s 0 --delta 0; graph.txt -s 0 --delta -1; graph.txt -s 0 --delta nan; path:3 -s 9; path:3
graph.txt -s 0 --delta inf; graph.txt -s 0 --delta x; negative.txt -s 0; weight_nan.txt -s 0
""",
    "pagerank graph.txt -b cpu": """
--alpha nan; --alpha -1; --alpha 2; --alpha inf; --alpha x; --tol 0; --tol -1; --tol nan; --tol inf
--tol 1e-300; --max-iter -1; --max-iter x; --max-iter 1.5; --max-iter 99999999999999999999999999
--tol 1e-300 --max-iter 1000000000; --alpha 1 --tol 1e-300 --max-iter 1000000000000; --seed 1
""",
    "bc graph.txt -b cpu": """
--sources -1; --sources 4; --sources x; --sources 99999999999999999999; --batch 0
--batch -1; --batch x; --batch 4; --batch 99999999999999999999999; --sources 2 --batch 3; --seed 1
""",
    "components graph.txt -b cpu": """
--method x; --method ''; --strong --method bfs; --strong --method fastsv
""",
    "diameter graph.txt -b cpu": """
--source 1; --source 0; --pseudo --source 9; --pseudo --source -1; --pseudo --source x
""",
    "path graph.txt -b cpu": """
-s 0; -t 0; -s 0 -t 9; -s 9 -t 0; -s -1 -t 0; -s 0 -t x; -s 0 -t -1
""",
    "order cycle:5": ";-b cpu",
    "generate": """
; kron:; kron:99 a.npz; kron:-1 a.npz; kron:5; kron:5 ''; kron:5 a.bmp; kron:5 a.npz.gz
kron:5 no/a.npz; kron:5 folder; kron:5 folder.npz; kron:5 .; kron:5 /proc/a.npz; '' a.npz
graph.txt a.npz; path:3 a.npz --seed 1; kron:5 a.npz --seed -1; kron:5 a.npz more; nograph:5 a.npz
""",
    "check": """
; path:3; path:3 -s 0; path:3 --levels levels.txt; path:3 -s 9 --levels levels.txt
path:3 -s 0 --sources 1 --levels levels.txt; path:3 --sources 0,1 --parents levels.txt
path:3 --sources 0,1 --each --levels levels.txt; path:3 -s 0 --each --levels levels.txt
path:3 -s 0 --cores levels.txt; path:3 --sources 0 --cores levels.txt; path:3 -s 0 --levels
path:3 --each --cores levels.txt; missing -s 0 --levels levels.txt; path:3 --blah levels.txt
path:3 -s 0 --levels levels.txt --seed 1; path:3 -s 0 --levels levels.txt --directed
path:3 -s 0 --levels levels.txt -b cpu; path:3 --sources 0,1 --each --levels short.npz
""",
    "crosscheck": """
; bfs; x path:3; '' path:3; bfs path:3 --backends ''; bfs path:3 --backends ,
bfs path:3 --backends cpu,; bfs path:3 --backends ,cpu,sim; bfs path:3 --backends cpu
bfs path:3 --backends cpu,cpu; bfs path:3 --backends sim,sim; bfs path:3 --backends cpu,tpu
bfs path:3 --backends cpu,sim,cpu; bfs path:3 --backends auto,auto; pagerank path:3 -s 1
bfs path:3 --backends cpu,sim -s 9; bfs path:3 --backends cpu,sim --target 1
path path:3 --backends cpu,sim; path path:3 --backends cpu,sim -t 9
sssp path:3 --backends cpu,sim --output levels; bfs path:3 --backends cpu,sim --kernel x
bfs path:3 --backends cpu,sim --kernel ''; bfs missing --backends cpu,sim
bfs path:3 --backends cpu,sim --seed 1; independent path:3 --backends cpu,sim --seed -1
independent path:3 --backends cpu,sim -s 1; bfs wide.mtx --backends cpu,sim
""",
    "selftest": "-b tpu; -b ''; --json no/a.json; --json ''; --json folder; -b cpu more; --blah",
    "backends": "more; --blah; --json x",
    "list": "more; --blah; --json x",
    "bench -b cpu": """
missing; ''; kron:; kron:99; kron:-1; kron:5 --roots 0; kron:5 --roots -1; kron:5 --roots x
kron:5 -b tpu; kron:5 -b ''; kron:5 --mode x; kron:5 --mode fused; kron:5 --kernel x
kron:5 --kernel ''; kron:5 --policy x; kron:5 --policy ''; kron:5 --policy all:2; kron:5 --output x
kron:5 --peers x; kron:5 --peers ''; kron:5 --json no/a; kron:5 --json ''; kron:5 --json folder
kron:5 --repeats 3; kron:5 --seconds 1; kron:5 --seed -1; folder; empty; binary; wide.mtx
nothing.mtx; path:1; kron0e0; kron99e9; --algorithm all; graph.txt --algorithm x
graph.txt --algorithm ''; graph.txt --algorithm all --roots 3; graph.txt --algorithm all --kernel x
graph.txt --algorithm all --mode fused; graph.txt --algorithm all --repeats 0
graph.txt --algorithm all --repeats -1; graph.txt --algorithm all --seconds nan
graph.txt --algorithm all --seconds inf; graph.txt --algorithm all --seconds -1
graph.txt --algorithm all --limit nan; graph.txt --algorithm all --limit inf
graph.txt --algorithm all --limit 1e300; graph.txt --algorithm all --limit 0
graph.txt --algorithm all --budget inf; graph.txt --algorithm all --budget nan
graph.txt --algorithm all --repeats 999999999999; graph.txt --algorithm all --peers x
""",
    "graph500 -b cpu": """
; --scale 0; --scale -1; --scale 99; --scale x; --scale nan; --scale 1.5; --scale 5 --edge-factor 0
--scale 5 --edge-factor -1; --scale 5 --edge-factor 99999999999; --scale 5 --roots 0
--scale 5 --roots -1; --scale 5 --roots 33; --scale 5 --roots 9999999999999999999999; --scale 5 more
--scale 5 -b tpu; --scale 5 -b ''; --scale 5 --json no/a; --scale 5 --json ''; --scale 5 --seed -1
""",
    "paper": """
; x; ''; 005; 003 more; 003 --table 9; 003 --table ''; 003 --table -1; 003 --figure 1
003 --figure x; 003 --table 1 --figure 1; 003 -b tpu; 003 -b ''; 003 --grid 2:cpu; 003 --graph x
003 --graph x=graph.txt; 003 --graph =; 003 --graph delaunayn15=; 003 --graph delaunayn15=missing
003 --only x; 003 --only ''; 003 --only enron; 003 --quick --only mycielski13; 003 --roots 0
003 --roots x; 003 --seed -1; 003 --json no/a; 003 --json ''; 003 --json folder
003 --section 1; 002 --section 3.3 --table 4; 001 --figure 4 -b cpu; 004 --table 1
003 --quick -b cpu --only delaunayn15 --graph delaunayn15=wide.mtx
003 --quick -b cpu --only delaunayn15 --graph delaunayn15=binary
003 --quick -b cpu --only delaunayn15 --graph delaunayn15=nothing.mtx
""",
    "": "blah; --blah; -x; ''",
}
RESULTS = """missing missing.npz folder folder.npz empty binary comments.txt three.txt large.txt
minus.txt twice.txt zero.txt outside.txt text.npz cut.npz nan.txt nan.npz letters.npz complex.npz
dates.npz records.npz objects.npz fractions.npz short.npz flat.npz beyond.npz '' /proc/self/mem
/dev/zero"""
UNREADABLE = ["nan.txt", "nan.npz", "twice.txt", "complex.npz", "records.npz"]
FROM_ONE = ["parents", "paths", "distances"]
WHOLE = [
    *("components", "strong", "sides", "cores", "order", "independent", "triangles", "clustering"),
    *("pagerank", "betweenness", "closeness", "harmonic"),
]


def wrong_commands() -> dict[str, list[str]]:
    """Return the arguments of each invocation, by their text."""
    lines = []
    for command, (needs, saves) in ALGORITHMS.items():
        lines.append(command)
        lines += [f"{command} {graph} {needs} -b cpu" for graph in GRAPHS]
        how = [*OPTIONS.split("\n")[1:-1], *(SAVING if saves else [])]
        lines += [f"{command} kron:3 {needs} {option}" for option in how]
    lines += [f"info {shlex.quote(graph)}" for graph in [*GRAPHS, *shlex.split(ALL_GRAPHS)]]
    lines += [
        f"info {more}" for more in ("", "path:3 --seed 1", "path:3 more", "kron:3 --directed")
    ]
    for command, own in OWN.items():
        lines += [
            f"{command} {more.strip()}" for more in own.strip("\n").replace("\n", ";").split(";")
        ]
    results = shlex.split(RESULTS)
    lines += [f"check path:3 -s 0 --levels {shlex.quote(file)}" for file in results]
    lines += [f"check path:3 -s 0 --{name} {file}" for name in FROM_ONE for file in UNREADABLE]
    lines += [f"check path:3 --{name} {file}" for name in WHOLE for file in UNREADABLE]
    return {line.strip(): shlex.split(line) for line in lines}
