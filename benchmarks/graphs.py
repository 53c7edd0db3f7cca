"""Graph attention, measured: quality on Cora, cost against edges, and equality with PyTorch Geometric.

    python -m benchmarks.graphs cora [--seeds 100] [--jobs 2]     test accuracy on the public split, mean and spread over seeds
    python -m benchmarks.graphs edges                             seconds and memory of one update, 10,000 to 1,000,000 edges
    python -m benchmarks.graphs geometric                         largest difference to PyTorch Geometric on the same weights
    ... --quick                                                   a few seeds, a few sizes: a minute or two
    ... --out FOLDER                                              where samples and charts go (.bench/graphs)

`cora` goes on where it stopped: seeds in FOLDER/cora.jsonl are not trained again. Cora is read from $KENTE_DATA/cora (default
../shared/data). PyTorch Geometric (`pip install torch_geometric`) is used where it is installed, and said to be missing where not.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from benchmarks.plot import Line, lines

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("KENTE_DATA", ROOT.parent / "shared" / "data"))
RECIPES = ("gat", "gatv2", "graph-dot", "gcn")
PAPER = {"gat": "83.0 +- 0.7 (Velickovic et al., 2018)", "gcn": "81.5 (Kipf and Welling, 2017)"}
KINDS = ("gat", "gatv2", "dot", "gcn")
SIZES, QUICK_SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000), (10_000, 30_000, 100_000)
DEGREE = 10
"""Edges for each node of the random graphs."""
INPUTS, CLASSES = 64, 8
LARGEST_TABLE = 30_000
"""Edges up to which a table of all pairs of nodes is tried, to show what it would cost."""


# ---------------------------------------------------------------- Cora


def train_once(recipe: str, seed: int, settings: list[str]) -> dict[str, Any]:
    """One training in a folder of its own: test accuracy of the weights with the lowest validation loss."""
    from kente import api
    from kente.data.graphs import TEST, VALIDATION

    files = api.GraphFiles(DATA / "cora" / "nodes.tsv", DATA / "cora" / "edges.tsv")
    with tempfile.TemporaryDirectory() as folder:
        begun = time.monotonic()
        result = api.graph_train(files, Path(folder) / "run", recipe=recipe, seed=seed, threads=1, settings=settings)
        answers = api.graph_predict(result.run.path, threads=1)
        test, validation = answers.accuracy(TEST), answers.accuracy(VALIDATION)
        assert test and validation
        return {
            "recipe": recipe,
            "seed": seed,
            "settings": settings,
            "test": test.value,
            "validation": validation.value,
            "updates": result.step,
            "seconds": round(time.monotonic() - begun, 2),
        }


def cora(out: Path, recipes: list[str], seeds: int, jobs: int, settings: list[str]) -> None:
    path = out / "cora.jsonl"
    done = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    known = {(sample["recipe"], sample["seed"], tuple(sample["settings"])) for sample in done}
    wanted = [(r, s) for s in range(1, seeds + 1) for r in recipes if (r, s, tuple(settings)) not in known]
    with ProcessPoolExecutor(jobs) as pool, open(path, "a", encoding="utf-8") as file:
        for future in as_completed([pool.submit(train_once, r, s, settings) for r, s in wanted]):
            sample = future.result()
            done.append(sample)
            file.write(json.dumps(sample) + "\n")
            file.flush()
            print(f"{sample['recipe']} seed {sample['seed']}: {sample['test']:.1f}", file=sys.stderr)
    print("| model | test accuracy | seeds | lowest to highest | validation | updates | seconds | the papers' |")
    print("|---|---|---|---|---|---|---|---|")
    for recipe in recipes:
        rows = [s for s in done if s["recipe"] == recipe and s["settings"] == settings and s["seed"] <= seeds]
        if not rows:
            continue
        test = [row["test"] for row in rows]
        spread = statistics.stdev(test) if len(test) > 1 else 0.0
        middle = {name: statistics.median(row[name] for row in rows) for name in ("validation", "updates", "seconds")}
        print(
            f"| {recipe} | {statistics.mean(test):.1f} +- {spread:.1f} | {len(test)} | {min(test):.1f} to {max(test):.1f} "
            f"| {middle['validation']:.1f} | {middle['updates']:.0f} | {middle['seconds']:.1f} | {PAPER.get(recipe, '')} |"
        )


# ---------------------------------------------------------------- cost against edges


def random_graph(edges: int) -> tuple[Any, Any, Any]:
    """(features, sources, targets) of a graph with DEGREE edges for each node."""
    import torch

    generator = torch.Generator().manual_seed(1)
    nodes = edges // DEGREE
    ends = torch.randint(nodes, (2, edges), generator=generator)
    return torch.randn(nodes, INPUTS, generator=generator), ends[0], ends[1]


def updates_of(kind: str, edges: int) -> Callable[[], None]:
    """A function that reads a random graph and finds the gradient of every weight, once."""
    import torch

    x, sources, targets = random_graph(edges)
    labels = torch.randint(CLASSES, (len(x),))
    if kind.startswith("geometric"):
        model, inputs = _geometric(kind.removeprefix("geometric-")), (x, torch.stack([sources, targets]))
    elif kind == "table":
        model, inputs = _table(len(x), sources, targets), (x,)
    else:
        from kente.config import GraphConfig
        from kente.models.build import build
        from kente.nn.graph import Edges

        model = build(GraphConfig(layer=kind), INPUTS, CLASSES)  # type: ignore[arg-type]
        inputs = (x, Edges.of(sources, targets, seen=len(x), looking=len(x)))

    def update() -> None:
        for parameter in model.parameters():
            parameter.grad = None
        torch.nn.functional.cross_entropy(model(*inputs), labels).backward()

    return update


def _geometric(kind: str) -> Any:
    import torch
    import torch_geometric.nn as geometric

    layer = {"gat": geometric.GATConv, "gatv2": geometric.GATv2Conv}[kind]

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = layer(INPUTS, 8, 8, dropout=0.6, add_self_loops=False)
            self.second = layer(64, CLASSES, 1, dropout=0.6, add_self_loops=False)

        def forward(self, x: Any, index: Any) -> Any:
            drop, elu = torch.nn.functional.dropout, torch.nn.functional.elu
            return self.second(drop(elu(self.first(drop(x, 0.6), index)), 0.6), index)

    return Network()


def _table(nodes: int, sources: Any, targets: Any) -> Any:
    """GAT with a table of all pairs, as the equations might be typed in."""
    import torch

    mask = torch.zeros(nodes, nodes, dtype=torch.bool)
    mask[targets, sources] = True
    mask.fill_diagonal_(True)

    class Layer(torch.nn.Module):
        def __init__(self, inputs: int, width: int, heads: int) -> None:
            super().__init__()
            self.value = torch.nn.Parameter(torch.randn(heads, inputs, width) / math.sqrt(inputs))
            self.ends = torch.nn.Parameter(torch.randn(2, heads, width, 1))

        def forward(self, x: Any) -> Any:
            values = x @ self.value
            scores = torch.nn.functional.leaky_relu(values @ self.ends[0] + (values @ self.ends[1]).mT, 0.2)
            weights = torch.nn.functional.dropout(scores.masked_fill(~mask, -math.inf).softmax(-1), 0.6)
            return (weights @ values).transpose(0, 1).flatten(1)

    drop, elu = torch.nn.Dropout(0.6), torch.nn.ELU()
    return torch.nn.Sequential(drop, Layer(INPUTS, 8, 8), elu, drop, Layer(64, CLASSES, 1))


def point(kind: str, edges: int, repeats: int) -> dict[str, Any]:
    """Measured in this process, which does nothing else."""
    from kente.memory import forget_peak, keep_freed_memory, peak_megabytes

    keep_freed_memory()
    update = updates_of(kind, edges)
    forget_peak()
    before = peak_megabytes()
    times = []
    for _ in range(repeats + 1):
        begun = time.perf_counter()
        update()
        times.append(time.perf_counter() - begun)
    return {
        "kind": kind,
        "edges": edges,
        "seconds": statistics.median(times[1:]),
        "megabytes": peak_megabytes() - before,
        "graph_megabytes": before,
    }


def edges(out: Path, sizes: tuple[int, ...], repeats: int) -> None:
    kinds = [*KINDS, "table"]
    if importlib.util.find_spec("torch_geometric"):
        kinds += ["geometric-gat", "geometric-gatv2"]
    else:
        print("PyTorch Geometric is not installed: left out", file=sys.stderr)
    samples = []
    for size in sizes:
        for kind in kinds:
            if kind == "table" and size > LARGEST_TABLE:
                continue
            command = [sys.executable, "-m", "benchmarks.graphs", "point", kind, str(size), str(repeats)]
            done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
            if done.returncode:
                print(f"{kind} with {size:,} edges failed: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
                continue
            samples.append(json.loads(done.stdout))
            print(json.dumps(samples[-1]), file=sys.stderr)
    (out / "edges.json").write_text(json.dumps(samples, indent=1) + "\n")
    print("| layer | " + " | ".join(f"{size:,} edges" for size in sizes) + " | growth |")
    print("|---" * (len(sizes) + 2) + "|")
    for kind in kinds:
        mine = {s["edges"]: s for s in samples if s["kind"] == kind}
        cells = [f"{mine[n]['seconds']:.3f} s, {mine[n]['megabytes']:,.0f} MB" if n in mine else "-" for n in sizes]
        print(
            f"| {kind} | "
            + " | ".join(cells)
            + f" | {_growth(mine, 'seconds')} time, {_growth(mine, 'megabytes')} memory |"
        )
    for field, unit in (("seconds", "seconds for one update"), ("megabytes", "megabytes at most, beside the graph")):
        series = [Line(kind, [(s["edges"], s[field]) for s in samples if s["kind"] == kind]) for kind in kinds]
        title, across = "The cost of an update grows with the edges", "edges, ten for each node"
        chart = lines(title, across, unit, series, log=True, log_up=True)
        (out / f"edges-{field}.svg").write_text(chart)


def _growth(samples: dict[int, dict[str, Any]], field: str) -> str:
    """The power of the number of edges that the cost grows with, between the two ends; 1 is linear."""
    ends = sorted(n for n, sample in samples.items() if sample[field] > 0)
    if len(ends) < 2:
        return "-"
    first, last = ends[0], ends[-1]
    power = math.log(samples[last][field] / samples[first][field]) / math.log(last / first)
    return f"edges^{power:.2f}"


# ---------------------------------------------------------------- equality


def geometric() -> None:
    """GAT, GATv2, GCN and dot products with the weights of PyTorch Geometric's layers, on Cora's own graph."""
    if not importlib.util.find_spec("torch_geometric"):
        sys.exit("PyTorch Geometric is not installed: pip install torch_geometric")
    import torch
    import torch_geometric.nn as theirs

    from kente.data.features import Features
    from kente.data.graphs import Schema, learn_classes, make_graph, read_nodes
    from kente.nn.graph import Edges, GraphAttention, GraphAttentionV2, GraphConvolution, GraphDotProduct

    table = read_nodes(DATA / "cora" / "nodes.tsv")
    schema = Schema(Features.learn(table.columns), learn_classes(table))
    graph = make_graph(table, DATA / "cora" / "edges.tsv", schema)
    nodes, size = len(graph), schema.features.size
    ends = torch.stack([torch.from_numpy(graph.sources), torch.from_numpy(graph.targets)])
    index = torch.cat([ends, ends.flip(0)], dim=1)
    looped = torch.cat([index, torch.arange(nodes).repeat(2, 1)], dim=1)
    edges_of = {
        loops: Edges.of(which[0], which[1], seen=nodes, looking=nodes)
        for loops, which in ((True, looped), (False, index))
    }
    torch.manual_seed(1)
    x = torch.randn(nodes, size)
    gat = {"value": "lin.weight", "looking": "att_dst", "seen": "att_src", "bias": "bias"}
    gatv2 = {"value": "lin_l.weight", "query": "lin_r.weight", "energy": "att", "bias": "bias"}
    dot = {"value": "lin_value.weight", "query": "lin_query.weight", "key": "lin_key.weight"}
    gcn = {"value": "lin.weight", "bias": "bias"}
    pairs: list[tuple[str, Any, Any, dict[str, str], bool]] = [
        ("GATConv", theirs.GATConv(size, 8, 8), GraphAttention(size, 8, 8), gat, True),
        ("GATv2Conv", theirs.GATv2Conv(size, 8, 8), GraphAttentionV2(size, 8, 8), gatv2, True),
        ("GCNConv", theirs.GCNConv(size, 16), GraphConvolution(size, 16), gcn, True),
        (
            "TransformerConv",
            theirs.TransformerConv(size, 8, 8, root_weight=False),
            GraphDotProduct(size, 8, 8),
            dot,
            False,
        ),
    ]
    for name, their, our, names, loops in pairs:
        their.eval()
        our.eval()
        known = dict(their.named_parameters())
        with torch.no_grad():
            for parameter, tensor in known.items():
                if parameter.startswith("lin") and parameter.endswith("bias"):
                    tensor.zero_()
            for mine, other in names.items():
                weight = (
                    known[other].T
                    if other.endswith("weight")
                    else known[other].view(dict(our.named_parameters())[mine].shape)
                )
                getattr(our, mine).copy_(weight)
            if "bias" not in names:
                our.bias.zero_()
            difference = (our(x, edges_of[loops])[0] - their(x, index)).abs().max().item()
        print(f"{name}: largest difference {difference:.1e}")


def main() -> None:
    if sys.argv[1:2] == ["point"]:
        print(json.dumps(point(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("cora", "edges", "geometric"))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--models", default=",".join(RECIPES))
    parser.add_argument("--set", action="append", default=[], dest="settings")
    parser.add_argument("--out", type=Path, default=ROOT / ".bench" / "graphs")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    match arguments.part:
        case "cora":
            seeds = arguments.seeds or (3 if arguments.quick else 100)
            cora(arguments.out, arguments.models.split(","), seeds, arguments.jobs, arguments.settings)
        case "edges":
            edges(arguments.out, QUICK_SIZES if arguments.quick else SIZES, 3 if arguments.quick else 7)
        case "geometric":
            geometric()


if __name__ == "__main__":
    main()
