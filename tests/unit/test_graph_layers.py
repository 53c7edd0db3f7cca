"""Attention over edges: each layer against its equation in plain loops, the gradients by differences, and PyTorch Geometric beside them."""

from __future__ import annotations

import math
import random

import pytest
import torch
import torch.nn.functional as F

from kente.config import GraphConfig
from kente.models.build import build
from kente.nn import graph as graph_module
from kente.nn.graph import (
    Edges,
    GraphAttention,
    GraphAttentionV2,
    GraphConvolution,
    GraphDotProduct,
    SparseRows,
    edge_dots,
    edge_softmax,
    neighbour_sum,
)

NODES, INPUTS, WIDTH, HEADS = 7, 5, 3, 2
LAYERS = [GraphAttention, GraphAttentionV2, GraphDotProduct, GraphConvolution]


def random_edges(nodes=NODES, count=16, seed=1, loops=True):
    """Edges drawn at random, each once, in no order."""
    draw = random.Random(seed)
    ends = {(draw.randrange(nodes), draw.randrange(nodes)) for _ in range(count)}
    ends |= {(node, node) for node in range(nodes)} if loops else set()
    sources, targets = torch.tensor(sorted(ends, key=lambda _: draw.random())).T
    return Edges.of(sources, targets, seen=nodes, looking=nodes)


def neighbours(edges, node):
    return [j for j, i in zip(edges.sources.tolist(), edges.targets.tolist(), strict=True) if i == node]


def random_nodes(nodes=NODES, inputs=INPUTS, seed=2):
    return torch.randn(nodes, inputs, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def made(kind, **options):
    torch.manual_seed(3)
    layer = kind(INPUTS, WIDTH, HEADS, **options).double().eval()
    if layer.bias is not None:
        layer.bias.data.normal_()
    return layer


def softmax(scores):
    total = sum(map(math.exp, scores))
    return [math.exp(score) / total for score in scores]


def leaky(x):
    return x if x > 0 else 0.2 * x


def gat_score(layer, head, h, i, j):
    """Lecture 001: LeakyReLU(a . [W h_i || W h_j])."""
    block = layer.value[:, head * WIDTH : (head + 1) * WIDTH]
    a = torch.cat([layer.looking[head], layer.seen[head]])
    return leaky(float(a @ torch.cat([h[i] @ block, h[j] @ block])))


def gatv2_score(layer, head, h, i, j):
    """Brody et al.: a . LeakyReLU(U h_i + W h_j)."""
    columns = slice(head * WIDTH, (head + 1) * WIDTH)
    both = h[i] @ layer.query[:, columns] + h[j] @ layer.value[:, columns]
    return sum(float(a) * leaky(float(x)) for a, x in zip(layer.energy[head], both, strict=True))


def dot_score(layer, head, h, i, j):
    """W_Q h_i . W_K h_j / sqrt(K)."""
    columns = slice(head * WIDTH, (head + 1) * WIDTH)
    return float((h[i] @ layer.query[:, columns]) @ (h[j] @ layer.key[:, columns])) / math.sqrt(WIDTH)


def by_hand(layer, score, h, edges, join):
    """h'_i = joined over heads of sum_j a_ij W h_j, plus the bias; one number at a time."""
    rows = []
    for i in range(len(h)):
        heads = []
        for head in range(HEADS):
            around = neighbours(edges, i)
            if score is None:
                degrees = [len(neighbours(edges, j)) for j in around]
                weights = [1 / math.sqrt(len(around) * degree) for degree in degrees]
            else:
                weights = softmax([score(layer, head, h, i, j) for j in around])
            block = layer.value[:, head * WIDTH : (head + 1) * WIDTH]
            heads.append(sum(w * (h[j] @ block) for w, j in zip(weights, around, strict=True)))
        rows.append(torch.cat(heads) if join == "concatenate" else sum(heads) / HEADS)
    return torch.stack(rows) + (0 if layer.bias is None else layer.bias)


@pytest.mark.parametrize("join", ["concatenate", "average"])
@pytest.mark.parametrize(
    ("kind", "score"),
    [
        (GraphAttention, gat_score),
        (GraphAttentionV2, gatv2_score),
        (GraphDotProduct, dot_score),
        (GraphConvolution, None),
    ],
)
@torch.no_grad()
def test_a_layer_is_its_equation(kind, score, join):
    layer, h, edges = made(kind, join=join), random_nodes(), random_edges()
    read, _ = layer(h, edges)
    torch.testing.assert_close(read, by_hand(layer, score, h, edges, join), atol=1e-12, rtol=0)


@torch.no_grad()
def test_without_a_bias_and_averaged_it_is_the_formula_of_the_lecture():
    """Lecture 001: h'_i = sigma(1/K sum_k sum_j a_ij^k W^k h_j), sigma taken after the layer."""
    layer, h, edges = made(GraphAttention, join="average", bias=False), random_nodes(), random_edges()
    assert sorted(dict(layer.named_parameters())) == ["looking", "seen", "value"]
    expected = F.elu(by_hand(layer, gat_score, h, edges, "average"))
    torch.testing.assert_close(F.elu(layer(h, edges)[0]), expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("kind", [GraphAttention, GraphAttentionV2, GraphDotProduct])
@torch.no_grad()
def test_the_weights_of_a_nodes_edges_sum_to_one(kind):
    edges = random_edges()
    _, weights = made(kind)(random_nodes(), edges)
    assert (weights > 0).all()
    sums = torch.zeros(HEADS, NODES, dtype=torch.float64).index_add_(1, edges.targets, weights)
    torch.testing.assert_close(sums, torch.ones_like(sums))


def test_a_softmax_over_huge_scores_stays_finite_in_every_node():
    """One node's scores are near 1e4, another's near -1e4: each is softmaxed beside its own largest."""
    edges = Edges.of(torch.tensor([0, 1, 0, 1]), torch.tensor([0, 0, 1, 1]), seen=2, looking=2)
    weights = edge_softmax(torch.tensor([[1e4, 1e4 - 1, -1e4, -1e4 - 1]]), edges)
    torch.testing.assert_close(weights[0], torch.tensor([math.e / (1 + math.e), 1 / (1 + math.e)]).repeat(2))


@pytest.mark.parametrize("strip", [3, 1000])
def test_gradients_are_those_found_by_differences(strip, monkeypatch):
    monkeypatch.setattr(graph_module, "STRIP", strip)
    edges, generator = random_edges(), torch.Generator().manual_seed(5)

    def random(*shape):
        return torch.randn(*shape, dtype=torch.float64, generator=generator).requires_grad_()

    torch.autograd.gradcheck(
        lambda w, v: neighbour_sum(w, v, edges), (random(HEADS, len(edges)), random(HEADS, NODES, WIDTH))
    )
    torch.autograd.gradcheck(
        lambda q, k: edge_dots(q, k, edges), (random(HEADS, NODES, WIDTH), random(HEADS, NODES, WIDTH))
    )
    torch.autograd.gradcheck(lambda s: edge_softmax(s, edges), (random(HEADS, len(edges)),))


@pytest.mark.parametrize("kind", LAYERS)
def test_every_weight_of_a_layer_gets_the_gradient_of_its_equation(kind):
    """The same loss through plain dense attention over a mask of edges, differentiated by torch."""
    layer, h, edges = made(kind), random_nodes(), random_edges()
    weights = torch.randn(NODES, HEADS * WIDTH, dtype=torch.float64)
    ours = torch.autograd.grad((layer(h, edges)[0] * weights).sum(), list(layer.parameters()))
    theirs = torch.autograd.grad((dense(layer, h, edges) * weights).sum(), list(layer.parameters()))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, atol=1e-10, rtol=1e-8)


def dense(layer, h, edges):
    """What the layer computes, with an N x N table of scores."""
    mask = torch.zeros(NODES, NODES, dtype=torch.bool)
    mask[edges.targets, edges.sources] = True
    parts = []
    for head in range(HEADS):
        columns = slice(head * WIDTH, (head + 1) * WIDTH)
        values = h @ layer.value[:, columns]
        if isinstance(layer, GraphConvolution):
            scale = mask.sum(1).double().rsqrt()
            parts.append((mask * scale[:, None] * scale) @ values)
            continue
        if isinstance(layer, GraphAttention):
            scores = F.leaky_relu((values @ layer.looking[head])[:, None] + (values @ layer.seen[head])[None], 0.2)
        elif isinstance(layer, GraphAttentionV2):
            both = (h @ layer.query[:, columns])[:, None] + values[None]
            scores = F.leaky_relu(both, 0.2) @ layer.energy[head]
        else:
            scores = (h @ layer.query[:, columns]) @ (h @ layer.key[:, columns]).T / math.sqrt(WIDTH)
        parts.append(scores.masked_fill(~mask, -math.inf).softmax(1) @ values)
    return torch.cat(parts, 1) + layer.bias


@pytest.mark.parametrize("kind", LAYERS)
def test_sparse_rows_are_read_as_the_matrix_they_stand_for(kind):
    layer, edges = made(kind), random_edges()
    matrix = random_nodes() * (torch.rand(NODES, INPUTS, generator=torch.Generator().manual_seed(9)) < 0.4)
    rows, places = matrix.nonzero(as_tuple=True)
    sparse = SparseRows(Edges.of(places, rows, seen=INPUTS, looking=NODES), matrix[rows, places])
    read = [layer(x, edges)[0] for x in (matrix, sparse)]
    torch.testing.assert_close(*read)
    gradients = [torch.autograd.grad(x.square().sum(), list(layer.parameters())) for x in read]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("layer", ["gat", "gatv2", "dot", "gcn"])
@torch.no_grad()
def test_two_layers_see_two_edges_far_and_no_further(layer):
    torch.manual_seed(0)
    model = build(GraphConfig(layer=layer, width=4, heads=2), INPUTS, 3).eval()
    path = torch.arange(5)  # 0 - 1 - 2 - 3 - 4
    sources, targets = torch.cat([path, path[:-1], path[1:]]), torch.cat([path, path[1:], path[:-1]])
    edges = Edges.of(sources, targets, seen=5, looking=5)
    h = random_nodes(5).float()
    changed = h.clone()
    changed[0] += 1
    differs = (model(h, edges) - model(changed, edges)).abs().amax(1) > 1e-6
    assert differs.tolist() == [True, True, True, False, False]


@pytest.mark.parametrize("layer", ["gat", "gatv2", "dot", "gcn"])
@torch.no_grad()
def test_nodes_in_another_order_get_the_same_answers(layer):
    torch.manual_seed(0)
    model = build(GraphConfig(layer=layer, width=4, heads=2, output_heads=2), INPUTS, 3).eval()
    edges, h = random_edges(), random_nodes().float()
    order = torch.randperm(NODES)  # the node at place p was order[p]
    place = torch.argsort(order)
    turned = Edges.of(place[edges.sources], place[edges.targets], seen=NODES, looking=NODES)
    torch.testing.assert_close(model(h[order], turned), model(h, edges)[order])


@torch.no_grad()
def test_in_gat_every_node_ranks_its_neighbours_alike_and_in_gatv2_not():
    """Brody et al. (2022), section 3: the ranking of keys by GAT's score does not depend on the query."""
    everyone = torch.cartesian_prod(torch.arange(NODES), torch.arange(NODES))
    edges = Edges.of(everyone[:, 0], everyone[:, 1], seen=NODES, looking=NODES)
    favourites = {}
    for kind in (GraphAttention, GraphAttentionV2):
        _, weights = made(kind)(10 * random_nodes(), edges)
        favourites[kind] = weights.view(HEADS, NODES, NODES).argmax(-1)
    assert all(len(set(row.tolist())) == 1 for row in favourites[GraphAttention])
    assert any(len(set(row.tolist())) > 1 for row in favourites[GraphAttentionV2])


@pytest.mark.parametrize("kind", LAYERS)
@torch.no_grad()
def test_a_node_that_looks_at_nobody_says_only_the_bias(kind):
    layer = made(kind)
    edges = Edges.of(torch.tensor([0]), torch.tensor([1]), seen=NODES, looking=NODES)
    read, _ = layer(random_nodes(), edges)
    assert read.isfinite().all()
    torch.testing.assert_close(read[2], layer.bias)


@pytest.mark.parametrize("layer", ["gat", "gatv2", "dot", "gcn"])
def test_a_table_of_all_pairs_never_exists(layer):
    """100,000 nodes in a ring: N x N numbers would take 40 GB."""
    nodes = 100_000
    ring = torch.arange(nodes)
    edges = Edges.of(ring, ring.roll(1), seen=nodes, looking=nodes)
    model = build(GraphConfig(layer=layer, width=2, heads=2), 4, 2)
    model(torch.randn(nodes, 4), edges).sum().backward()
    assert all(weights.grad.isfinite().all() for weights in model.parameters())


def test_dropout_silences_edges_only_while_training():
    layer, h, edges = made(GraphAttention, dropout=0.5), random_nodes(), random_edges()
    still = layer(h, edges)[0]
    torch.testing.assert_close(layer(h, edges)[0], still)
    layer.train()
    noisy, weights = layer(h, edges)
    assert not torch.allclose(noisy, still)
    torch.testing.assert_close(
        weights, layer.eval()(h, edges)[1]
    )  # what is shown is what was looked at, not what was dropped


# ---------------------------------------------------------------- beside PyTorch Geometric, where it is installed


def geometric():
    return pytest.importorskip("torch_geometric.nn", reason="PyTorch Geometric is not installed")


@torch.no_grad()
def check_equal(layer, theirs, self_loops=True):
    edges = random_edges(nodes=30, count=120, loops=False)
    ours = edges
    if self_loops:
        keep, every = edges.sources != edges.targets, torch.arange(30)
        both = (torch.cat([ends[keep], every]) for ends in (edges.sources, edges.targets))
        ours = Edges.of(*both, seen=30, looking=30)
    h = random_nodes(30).float()
    index = torch.stack([edges.sources, edges.targets])
    torch.testing.assert_close(layer(h, ours)[0], theirs(h, index), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("join", ["concatenate", "average"])
def test_gat_equals_pytorch_geometrics(join):
    theirs = geometric().GATConv(INPUTS, WIDTH, HEADS, concat=join == "concatenate").eval()
    layer = made(GraphAttention, join=join).float()
    layer.value.data = theirs.lin.weight.data.T.clone()
    layer.looking.data, layer.seen.data = theirs.att_dst.data[0], theirs.att_src.data[0]
    theirs.bias.data = layer.bias.data.clone()
    check_equal(layer, theirs)


def test_gatv2_equals_pytorch_geometrics():
    theirs = geometric().GATv2Conv(INPUTS, WIDTH, HEADS).eval()
    theirs.lin_l.bias.data.zero_()
    theirs.lin_r.bias.data.zero_()
    layer = made(GraphAttentionV2).float()
    layer.value.data, layer.query.data = theirs.lin_l.weight.data.T.clone(), theirs.lin_r.weight.data.T.clone()
    layer.energy.data = theirs.att.data[0]
    theirs.bias.data = layer.bias.data.clone()
    check_equal(layer, theirs)


def test_gcn_equals_pytorch_geometrics():
    theirs = geometric().GCNConv(INPUTS, WIDTH).eval()
    torch.manual_seed(3)
    layer = GraphConvolution(INPUTS, WIDTH).eval()
    layer.value.data = theirs.lin.weight.data.T.clone()
    check_equal(layer, theirs)


def test_dot_products_equal_pytorch_geometrics_transformer_convolution():
    theirs = geometric().TransformerConv(INPUTS, WIDTH, HEADS, root_weight=False).eval()
    layer = made(GraphDotProduct).float()
    for ours, linear in ((layer.query, theirs.lin_query), (layer.key, theirs.lin_key), (layer.value, theirs.lin_value)):
        linear.bias.data.zero_()
        ours.data = linear.weight.data.T.clone()
    layer.bias.data.zero_()
    check_equal(layer, theirs, self_loops=False)
