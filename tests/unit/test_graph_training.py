"""Graphs as a user meets them: training, stopping, going on, new graphs, and whom nodes look at."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from kente import api
from kente.config import GraphConfig
from kente.data.features import Bags
from kente.data.graphs import TEST, TRAIN, Graph
from kente.errors import ConfigError, CorpusError, RunError, UsageError
from kente.measure.graphs import NodeAnswers, layer_looks, neighbourhood, telling_nodes, wilson
from kente.models.build import build
from kente.nn.graph import SparseRows
from kente.runs import Run
from kente.show.graphs import graph_page
from kente.train.graphs import GraphBatch, NodeCrossEntropy, network_inputs

SETTINGS = (
    "model.width=4",
    "model.heads=2",
    "model.dropout=0.2",
    "model.attention_dropout=0.2",
    "train.validate_every=5",
)


def communities(folder: Path, name: str, nodes: int = 120, seed: int = 1, column: str = "features") -> api.GraphFiles:
    """Two kinds of nodes that mostly know their like; of their six words, two or so give the kind away."""
    draw = random.Random(seed)
    kinds = [draw.choice("xy") for _ in range(nodes)]
    common, own = [f"w{i}" for i in range(20)], {kind: [f"{kind}{i}" for i in range(20)] for kind in "xy"}
    rows, edges = [f"id\tlabel\tsplit\t{column}"], []
    for node, kind in enumerate(kinds):
        words = [draw.choice(own[kind] if draw.random() < 0.3 else common) for _ in range(6)]
        split = "train" if node < 20 else "validation" if node < 50 else "test"
        rows.append(f"n{node}\t{kind}\t{split}\t{' '.join(words)}")
        for _ in range(3):
            like = [other for other in range(nodes) if (kinds[other] == kind) == (draw.random() < 0.9)]
            edges.append(f"n{node}\tn{draw.choice(like or [node])}")
    for suffix, lines in (("nodes", rows), ("edges", edges)):
        (folder / f"{name}-{suffix}.tsv").write_text("".join(f"{line}\n" for line in lines))
    return api.GraphFiles(folder / f"{name}-nodes.tsv", folder / f"{name}-edges.tsv")


def train(files, out, *more, **options):
    given = {"updates": 10, "threads": 1, "seed": 3} | options
    return api.graph_train(files, out, settings=(*SETTINGS, *more), **given)


def sha(run):
    return api.info(run)["weights_sha256"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("graphs")


QUICKLY = ("optimiser.rate=0.03", "train.validate_every=20", "train.patience=2")


@pytest.fixture(scope="module")
def trained(folder):
    """A network that has learned what there is to learn."""
    return train(communities(folder, "first"), folder / "run", *QUICKLY, updates=60).run.path


@pytest.mark.learns
@pytest.mark.parametrize("recipe", ["gat", "gatv2", "graph-dot", "gcn"])
def test_every_recipe_learns_from_neighbours_and_stops_early(folder, recipe):
    """By its own words alone the likelier kind is right for about nine in ten; neighbours tell the rest."""
    result = train(communities(folder, "first"), folder / recipe, *QUICKLY, updates=None, recipe=recipe)
    assert result.stopped == "no better for 2 validations" and result.step < 5000
    assert api.graph_predict(folder / recipe, threads=1).accuracy(TEST).value >= 85


def test_a_new_graph_is_answered_with_nothing_but_its_own_nodes_and_edges(folder, trained):
    other = communities(folder, "other", nodes=200, seed=2)
    answers = api.graph_predict(trained, other, threads=1)
    assert answers.graph.ids[:2] == ["n0", "n1"] and len(answers.graph) == 200
    assert answers.accuracy().value >= 85
    nodes = other.nodes.read_text().splitlines()
    blind = ["id\tfeatures", *("\t".join(row.split("\t")[i] for i in (0, 3)) for row in nodes[1:])]
    (folder / "blind.tsv").write_text("".join(f"{line}\n" for line in blind))
    unlabelled = api.graph_predict(trained, api.GraphFiles(folder / "blind.tsv", other.edges), threads=1)
    assert unlabelled.rows() == answers.rows()  # labels are looked at to score, and for nothing else
    assert unlabelled.accuracy() is None


def test_stopped_and_carried_on_it_ends_with_the_same_weights_bit_for_bit(folder):
    files = communities(folder, "first")
    for name, updates in (("whole", 20), ("half", 10)):
        train(files, folder / name, updates=updates)
    files.nodes.unlink()  # what is needed is in the run
    result = api.resume(folder / "half", updates=20, threads=1)
    assert result.step == 20
    assert sha(folder / "half") == sha(folder / "whole")


def test_the_same_seed_trains_the_same_weights_and_another_does_not(folder):
    files = communities(folder, "first")
    for name, seed in (("one", 3), ("two", 3), ("three", 4)):
        train(files, folder / name, seed=seed)
    assert sha(folder / "one") == sha(folder / "two") != sha(folder / "three")


def test_a_run_is_not_replaced_where_the_new_one_cannot_be(folder, trained, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    whole = sha(trained)
    with pytest.raises(UsageError, match="--device cuda: this machine or this build of torch has no cuda"):
        train(communities(folder, "first"), trained, force=True, device="cuda")
    with pytest.raises(
        ConfigError, match=r"train.precision = bfloat16: a network over a graph has no products that are"
    ):
        train(communities(folder, "first"), trained, "train.precision=bfloat16", force=True)
    assert sha(trained) == whole


def test_minutes_end_a_run(folder):
    result = train(communities(folder, "first"), folder / "timed", "train.patience=0", updates=None, minutes=0.1)
    assert result.seconds < 60 and result.step >= 1
    assert result.stopped == "planned updates done"


def test_text_is_cut_by_the_runs_own_tokenizer(folder):
    files = communities(folder, "texts", column="text")
    train(files, folder / "text", "tokenizer.kind=words", *QUICKLY, updates=60)
    assert (folder / "text" / "tokenizer" / "tokenizer.json").exists()
    answers = api.graph_predict(folder / "text", communities(folder, "more", seed=5, column="text"), threads=1)
    assert answers.accuracy().value >= 75
    other = folder / "elsewhere"
    train(communities(folder, "apart", seed=9, column="text"), other, "tokenizer.kind=characters")
    for name in ("tokenizer.json", "joint.txt", "joint.json"):
        if (other / "tokenizer" / name).exists():
            (folder / "text" / "tokenizer" / name).write_bytes((other / "tokenizer" / name).read_bytes())
    with pytest.raises(RunError, match="tokenizer"):
        api.graph_predict(folder / "text", threads=1)


def test_features_of_another_run_are_refused(folder):
    train(communities(folder, "first"), folder / "mine")
    schema = json.loads((folder / "mine" / "features.json").read_bytes())
    schema["classes"].reverse()
    (folder / "mine" / "features.json").write_text(json.dumps(schema))
    with pytest.raises(RunError, match=r"features\.json .* is not the one .* was trained with"):
        api.graph_predict(folder / "mine", threads=1)


def test_a_run_on_a_graph_is_no_translator(trained):
    with pytest.raises(RunError, match="needs a translator"):
        api.load(trained)


def test_facts_about_a_run_on_a_graph(trained):
    facts = api.info(trained)
    assert facts["parameters"] > 0 and facts["best"]["score"]["name"] == "loss"
    assert "kente graph predict run" in (trained / "README.md").read_text()
    assert api.summary(trained).parameters == facts["parameters"]


def test_what_a_graph_cannot_be_trained_with_is_said_before_a_folder_is_made(folder):
    files = communities(folder, "first")
    with pytest.raises(ConfigError, match=r"model\.kind = recurrent cannot become a network over a graph"):
        api.graph_train(files, folder / "never", recipe="gru")
    with pytest.raises(CorpusError, match="there is no file"):
        api.graph_train(api.GraphFiles(folder / "gone.tsv", files.edges), folder / "never")
    assert not (folder / "never").exists()


# ---------------------------------------------------------------- the parts


def little(labels=(0, 1, -1), splits=(TRAIN, TEST, 0), values=(1.0, 0.5, 0.5, 1.0)):
    """Three nodes in a row, 0 -> 1 -> 2."""
    bags = Bags(np.array([0, 1, 3, 4]), np.array([0, 0, 1, 2]), np.array(values, np.float32))
    ends = np.array([0, 1]), np.array([1, 2])
    return Graph(list("abc"), list("abc"), bags, np.array(labels), np.array(splits, np.int8), *ends)


@pytest.mark.parametrize(
    ("both_ways", "self_loops", "expected"),
    [
        (False, False, {(0, 1), (1, 2)}),
        (True, False, {(0, 1), (1, 2), (1, 0), (2, 1)}),
        (False, True, {(0, 1), (1, 2), (0, 0), (1, 1), (2, 2)}),
    ],
)
def test_who_looks_at_whom(both_ways, self_loops, expected):
    _, edges = network_inputs(little(), GraphConfig(both_ways=both_ways, self_loops=self_loops), 3)
    assert set(zip(edges.sources.tolist(), edges.targets.tolist(), strict=True)) == expected


def test_features_are_held_as_bags_or_as_a_matrix_and_mean_the_same():
    torch.manual_seed(0)
    model = build(GraphConfig(width=2, heads=2), 100, 2).eval()
    sparse, edges = network_inputs(little(), GraphConfig(), 100)
    dense, _ = network_inputs(little(), GraphConfig(), 3)
    assert isinstance(sparse, SparseRows) and isinstance(dense, torch.Tensor)
    torch.testing.assert_close(model(sparse, edges), model(F.pad(dense, (0, 97)), edges))


def test_the_penalty_is_half_the_squared_length_of_all_weights_for_each_label():
    torch.manual_seed(0)
    model = build(GraphConfig(width=2, heads=2, dropout=0.0, attention_dropout=0.0), 3, 2)
    batch = GraphBatch.of(little(), network_inputs(little(), GraphConfig(), 3), TRAIN)
    plain = NodeCrossEntropy()(model, batch)
    length = sum(weights.detach().square().sum().item() for weights in model.parameters())
    logits = model(batch.features, batch.edges)
    assert plain.total.item() == pytest.approx(-logits.log_softmax(1)[0, 0].item())
    assert NodeCrossEntropy(0.0, 0.1)(model, batch).total.item() == pytest.approx(plain.total.item() + 0.05 * length)
    assert NodeCrossEntropy(0.3, 0.1)(model.eval(), batch).total.item() == pytest.approx(plain.total.item())


def answers_of(graph, shares):
    return NodeAnswers(graph, ["red", "blue"], np.array(shares, np.float32))


def test_accuracy_counts_labelled_nodes_and_carries_its_interval():
    answers = answers_of(little(), [[0.9, 0.1], [0.8, 0.2], [0.5, 0.5]])
    assert {name: score.value for name, score in answers.scores().items()} == {"train": 100.0, "test": 0.0}
    assert answers.lines()[0] == "a\tred\t0.9000"
    low, high = wilson(0.5, 100)
    for bound in (low, high):  # where the true share would be exactly z standard errors away
        assert abs(0.5 - bound) == pytest.approx(1.96 * math.sqrt(bound * (1 - bound) / 100))


def test_a_neighbourhood_holds_the_weights_of_its_edges_strongest_first():
    graph = little()
    _, edges = network_inputs(graph, GraphConfig(), 3)
    weights = torch.tensor([[0.25, 0.75, 0.2, 0.3, 0.5, 0.6, 0.4]])  # of a: a b, of b: a b c, of c: b c
    seen = neighbourhood(1, answers_of(graph, [[1, 0], [0.4, 0.6], [0, 1]]), edges, [weights])
    assert [(n.id, n.itself, n.label, n.weights) for n in seen.neighbours] == [
        ("c", False, None, ((pytest.approx(0.5),),)),
        ("b", True, "blue", ((pytest.approx(0.3),),)),
        ("a", False, "red", ((pytest.approx(0.2),),)),
    ]
    assert (seen.predicted, seen.label, list(seen.probabilities)) == ("blue", "blue", ["blue", "red"])


def test_equal_weights_are_even_and_a_layer_that_looks_at_its_like_is_seen_to():
    graph = little(labels=(0, 0, 1))
    _, edges = network_inputs(graph, GraphConfig(), 3)
    answers = answers_of(graph, [[1, 0], [1, 0], [0, 1]])
    even = torch.tensor([[1 / 2, 1 / 2, 1 / 3, 1 / 3, 1 / 3, 1 / 2, 1 / 2]])
    like = torch.tensor([[0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0]])  # a at b, b at a, c at b, for want of its like
    first, second = layer_looks(answers, edges, [even, like])
    assert first.evenness == pytest.approx(1) and first.alike == pytest.approx(first.alike_if_even)
    assert first.itself == pytest.approx((1 / 2 + 1 / 3 + 1 / 2) / 3)
    assert second.evenness == pytest.approx(0, abs=1e-6) and second.itself == 0
    assert (second.alike, second.alike_if_even) == (pytest.approx(2 / 3), pytest.approx((1 + 1 / 2 + 0) / 3))


def test_telling_nodes_are_sure_and_right_sure_and_wrong_and_torn():
    graph = little(labels=(0, 0, 1), splits=(TEST, TEST, TEST))
    chosen = telling_nodes(answers_of(graph, [[0.9, 0.1], [0.2, 0.8], [0.45, 0.55]]), each=1)
    assert chosen == {0: "sure and right", 1: "sure and wrong", 2: "torn"}


def test_a_page_shows_nodes_and_no_name_can_become_markup(folder, trained):
    seen = api.graph_look(trained, ["n60", "n3"], folder / "look.html", threads=1)
    text = (folder / "look.html").read_text()
    assert [node.id for node in seen.nodes] == ["n60", "n3"]
    assert text.count('class="look"') > 4 and "default-src 'none'" in text and "http" not in text.split("</style>")[1]
    for node in seen.nodes:
        for layer in range(2):
            heads = zip(*(neighbour.weights[layer] for neighbour in node.neighbours), strict=True)
            assert [sum(head) for head in heads] == pytest.approx(
                [1.0] * len(node.neighbours[0].weights[layer]), abs=1e-5
            )
    hostile = "<img src=x onerror=alert(1)>"
    graph = little()
    graph.names[:] = [hostile, "</script><script>alert(1)</script>", "c"]
    _, edges = network_inputs(graph, GraphConfig(), 3)
    node = neighbourhood(1, answers_of(graph, [[1, 0], [0.4, 0.6], [0, 1]]), edges, [torch.full((2, 7), 0.4)])
    page = graph_page("t", [(node, "")], [])
    assert hostile not in page and "<script>alert" not in page and "&lt;img" in page


def test_a_node_nobody_knows_is_said_with_the_nearest_one(folder, trained):
    with pytest.raises(UsageError, match="no node has the id n6O; did you mean n6"):
        api.graph_look(trained, ["n6O"], folder / "x.html", threads=1)
    assert Run.open(trained).config.train.task == "nodes"
