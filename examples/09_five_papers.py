"""One loop with the rules of five papers: change their numbers and see the levels turn."""

import numpy as np

from lagpu import BOOL, FP64, INT32, Vector, binary, generators, loop, semiring
from lagpu.algorithms import betweenness_centrality, bfs_levels

hubs = generators.kronecker(12, 4, backend="cpu")
streets = generators.road(24, backend="cpu")


def search(A, source, pulls):
    """Return levels, and the numbers of each; `pulls` chooses the direction from them."""
    degree = A.reduce_rowwise("plus").new().to_dense(0)
    levels = Vector(INT32, A.nrows, like=A)
    frontier = Vector(BOOL, A.nrows, like=A)
    frontier[source] = True
    rows, pull = [], False
    for depth in loop(until_empty=frontier):
        levels(frontier.S) << depth
        inside, unseen = frontier.to_coo()[0], levels.to_dense(-1) < 0
        x = {"n": A.nrows, "frontier": len(inside), "edges": degree[inside].sum()}
        x |= {"unvisited": unseen.sum(), "unexplored": degree[unseen].sum()}
        pull = bool(pulls(x, pull))
        rows.append(x | {"pull": pull})
        policy = "pull" if pull else "push"
        frontier(~levels.S, replace=True) << semiring.any_pair(frontier @ A, policy=policy)
    return levels, rows


def show(name, rows):
    """Print the direction of each level, and how many entries the search looks at, at most."""
    turns = "".join("^" if x["pull"] else "." for x in rows)
    entries = sum(x["unexplored"] if x["pull"] else x["edges"] for x in rows)
    print(f"{name:14} {turns:8} {entries:7,} entries")


def hybrid(alpha, beta=20):
    """Hiragushi and Takahashi: by the edges of the frontier, and back by its vertices."""

    def pulls(x, pull):
        if pull:
            return x["frontier"] >= x["n"] / beta
        return x["edges"] > x["unexplored"] / alpha

    return pulls


for alpha in (1, 14, 48):
    show(f"alpha {alpha}", search(hubs, 1, hybrid(alpha))[1])

for alpha in (14, 48, 1000):
    rows = search(streets, 0, hybrid(alpha))[1]
    print(f"alpha {alpha}: {sum(x['pull'] for x in rows)} of {len(rows)} levels pull")


def threads(degrees, K):
    """Return the edges of each thread: a vertex of more than K is several."""
    groups = [np.minimum(K, d - np.arange(0, d, K)) for d in degrees]
    return np.concatenate(groups)


def idle(edges):
    """Return the share of its time that a thread waits for the longest of its warp of 32."""
    warps = np.pad(edges, (0, -len(edges) % 32)).reshape(-1, 32)
    return 1 - edges.sum() / (32 * warps.max(1)).sum()


level = bfs_levels(hubs, 1).to_dense(-1)
degree = hubs.reduce_rowwise("plus").new().to_dense(0)
largest = degree[level == 1]
for K in (8, 32, 128, 1024):
    edges = threads(largest, K)
    print(f"K {K:4}: {len(edges):5,} threads, idle {idle(edges):.0%}")


def ratio(R_th):
    """Bernaschi and others: by the vertices of the frontier and those without a level."""
    return lambda x, pull: x["frontier"] >= R_th * x["unvisited"]


for R_th in (0.001, 0.05, 0.5, 10):
    show(f"R_th {R_th}", search(hubs, 1, ratio(R_th))[1])


def dependencies(A, source):
    """Return how many shortest paths depend on each vertex, by the frontiers that were kept."""
    paths = Vector(FP64, A.nrows, like=A)
    frontier = Vector(FP64, A.nrows, like=A)
    frontier[source] = 1.0
    kept = []
    while frontier.nvals:
        paths(frontier.S) << frontier
        kept.append(frontier.dup())
        frontier(~paths.S, replace=True) << semiring.plus_first(frontier @ A)
    delta = Vector.from_scalar(0.0, A.nrows, FP64, like=A)
    for k in reversed(range(1, len(kept))):
        above, here = kept[k - 1], kept[k]
        share = delta.apply("plus", 1.0).new(mask=here.S).ewise_mult(paths, "truediv").new()
        back = semiring.plus_first(share @ A.T).new(mask=above.S)
        delta(above.S, accum=binary.plus) << back.ewise_mult(paths, "times")
    delta[source] = 0.0
    return delta.to_dense(0.0)


small = generators.road(5, backend="cpu")
found = sum(dependencies(small, s) for s in range(small.nrows))
right = betweenness_centrality(small, normalized=False, directed=True).to_dense(0.0)
print("betweenness agrees:", np.allclose(found, right))


def dense(threshold):
    """Artiles and Saeed: pull from a share of the vertices on, and never push again."""
    return lambda x, pull: pull or x["frontier"] >= threshold * x["n"]


for threshold in (0.01, 0.1, 0.9):
    show(f"threshold {threshold}", search(hubs, 1, dense(threshold))[1])
show("streets 0.03", search(streets, 0, dense(0.03))[1])


def messages(A, source, R, C):
    """Return the vertices that an R x C grid expands and folds in a search."""
    level = bfs_levels(A, source).to_dense(-1)
    block = np.arange(A.nrows) * R * C // A.nrows
    j = block // R  # the owner's column; its row is block % R
    tails, heads, _ = A.to_coo()
    followed = (level[tails] >= 0) & (
        j[tails] != j[heads]
    )  # by process (row of head, column of tail)
    sent = set(zip(heads[followed].tolist(), j[tails][followed].tolist()))
    return (level >= 0).sum() * (R - 1), len(sent)


for R, C in ((1, 16), (4, 4), (16, 1)):
    for name, A in (("hubs", hubs), ("streets", streets)):
        expand, fold = messages(A, 1, R, C)
        print(f"{R:2} x {C:2} {name:7} expand {expand:6,}, fold {fold:6,}")
