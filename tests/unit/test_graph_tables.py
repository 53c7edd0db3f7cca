"""Graphs from tables: what columns mean, what is refused with file and line, and what is counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kente.data.features import Features
from kente.data.graphs import (
    NONE,
    TEST,
    TRAIN,
    VALIDATION,
    Schema,
    hold_out_nodes,
    learn_classes,
    make_graph,
    open_graph,
    read_edges,
    read_nodes,
    save_graph,
)
from kente.errors import CorpusError, RunError
from kente.reporting import Reporter


class Listener(Reporter):
    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    warn = say


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def matrix(columns, encode=None, pieces=0):
    """The features of a table as a dense matrix."""
    features = Features.learn(columns, pieces)
    rows = len(next(iter(columns.values())))
    bags, unknown = features.read(columns, rows, encode)
    dense = np.zeros((rows, features.size))
    for row in range(rows):
        part = slice(bags.starts[row], bags.starts[row + 1])
        dense[row, bags.places[part]] = bags.values[part]
    return features, dense, unknown


CSV = (
    'ID,Label,split,year,venue,text\np1,theory,train,1990,ICML,"attention, on graphs"\np2,,,2000,KDD,"two ""words"""\n'
)


def test_a_csv_with_a_header_is_read_by_its_names(tmp_path):
    table = read_nodes(written(tmp_path, "nodes.csv", CSV))
    assert (table.ids, table.labels, table.names) == (["p1", "p2"], ["theory", ""], ["p1", "p2"])
    assert table.splits.tolist() == [TRAIN, NONE]
    assert dict(table.columns) == {
        "year": ["1990", "2000"],
        "venue": ["ICML", "KDD"],
        "text": ["attention, on graphs", 'two "words"'],
    }


@pytest.mark.parametrize(
    ("row", "columns"),
    [("a\t1\t19 81", None), ("a\t1\ttrain\t19 81", None), ("a\t19 81\t1", ("id", "features", "label"))],
)
def test_a_file_without_a_header_has_its_usual_columns_or_those_named(tmp_path, row, columns):
    table = read_nodes(written(tmp_path, "nodes.tsv", row + "\n"), columns)
    assert (table.ids, table.labels, dict(table.columns)) == (["a"], ["1"], {"features": ["19 81"]})


@pytest.mark.parametrize(
    ("header", "seen"),
    [("paper_id,label,title", "label"), ("paper,Class,features", "Class"), ("paper,label,split,features", "label")],
)
def test_a_header_whose_ids_go_by_another_name_is_no_node(tmp_path, header, seen):
    row = ",".join(["p1", "theory", "train", "19 81"][: header.count(",") + 1])
    path = written(tmp_path, "nodes.csv", f"{header}\n{row}\n")
    known = r"id or node or node_id \(others that are known: label, class, split, name, features\)"
    with pytest.raises(CorpusError, match=rf"nodes.csv:1: '{seen}' stands in a row .* called 'id'; .* {known}"):
        read_nodes(path)
    named = tuple(header.lower().replace("paper_id", "id").replace("paper", "id").split(","))
    written(tmp_path, "nodes.csv", f"p0,class,{','.join(row.split(',')[2:])}\n{row}\n")
    assert read_nodes(path, named).labels == ["class", "theory"]  # named by hand, any word is a label


@pytest.mark.parametrize("name", ["edges.csv", "edges.tsv", "edges.txt"])
def test_edges_are_read_whatever_separates_them_and_count_once(tmp_path, name):
    between = {"edges.csv": ",", "edges.tsv": "\t", "edges.txt": "  "}[name]
    lines = [("from", "to"), ("a", "b"), ("b", "c"), ("a", "b")]
    path = written(tmp_path, name, "".join(between.join(line) + "\n" for line in lines))
    heard = Listener()
    sources, targets = read_edges(path, ["a", "b", "c"], heard)
    assert (sources.tolist(), targets.tolist()) == ([0, 1], [1, 2])
    assert heard.said == [f"{path}: 1 edges stand there more than once and count once"]


def test_edges_of_unknown_nodes_are_counted_and_too_many_of_them_refused(tmp_path):
    heard = Listener()
    path = written(tmp_path, "e.tsv", "a\tb\nb\tx\nb\ta\n")
    assert read_edges(path, ["a", "b"], heard)[0].tolist() == [0, 1]
    assert "left out 1 edges that name a node nobody knows (line 2: 'x')" in heard.said[0]
    with pytest.raises(CorpusError, match="2 of 3 edges name a node that is not in the table of nodes"):
        read_edges(written(tmp_path, "f.tsv", "a\ta\na\tx\ny\ta\n"), ["a"])


def test_features_by_name_are_shares_of_one():
    features, dense, _ = matrix({"features": ["9 10", "10:3 2:1", ""]})
    assert list(features.names) == ["features=2", "features=9", "features=10"]  # as numbers, not as text
    assert dense.tolist() == [[0, 0.5, 0.5], [0.25, 0, 0.75], [0, 0, 0]]


def test_a_column_whose_name_holds_an_equals_sign_is_described_like_any_other():
    features, dense, _ = matrix({"size=big": ["yes", "no", "yes"], "colour": ["red", "blue", "green"]})
    assert features.describe() == "size=big: category of 2 values; colour: category of 3 values"
    assert dense.sum(axis=1).tolist() == [1, 1, 1]


def test_numbers_have_mean_zero_and_spread_one_and_a_gap_is_the_mean():
    features, dense, _ = matrix({"year": ["1990", "2010", ""]})
    assert features.kinds == {"year": "number"}
    assert dense[:, 0].tolist() == [-1, 1, 0]


def test_flags_and_categories_are_features_of_their_own():
    features, dense, _ = matrix({"old": ["1", "0"], "venue": ["KDD", "ICML"], "empty": ["", ""]})
    assert features.kinds == {"old": "flag", "venue": "category"}
    assert list(features.names) == ["old", "venue=ICML", "venue=KDD"]
    assert dense.tolist() == [[0.5, 0, 0.5], [0, 1, 0]]


def test_empty_columns_without_a_name_are_no_columns(tmp_path):
    table = read_nodes(written(tmp_path, "nodes.csv", "id,label,age,,\na,x,3,,\nb,y,4,,\n"))
    assert (table.ids, table.labels, dict(table.columns)) == (["a", "b"], ["x", "y"], {"age": ["3", "4"]})


def test_a_column_that_a_model_knows_as_a_feature_is_no_label(tmp_path):
    table = read_nodes(written(tmp_path, "nodes.csv", "id,class,age\na,gold,3\n"), features={"class", "age"})
    assert (table.labels, dict(table.columns)) == ([""], {"class": ["gold"], "age": ["3"]})


def test_row_numbers_that_a_program_wrote_are_no_ends_of_edges(tmp_path):
    with pytest.raises(CorpusError, match=r"edges\.csv:1: the first column has no name .* leave it out"):
        read_edges(written(tmp_path, "edges.csv", ",source,target\n0,5,6\n1,0,5\n"), ["0", "1", "5", "6"])


def test_a_column_that_never_changed_in_training_stays_small_elsewhere():
    features, dense, _ = matrix({"rate": ["0.1", "0.1", "0.1"]})
    assert np.abs(dense).max() < 1e-9
    bags, _ = features.read({"rate": ["0.2"]}, 1)
    assert bags.values.tolist() == pytest.approx([0.1])


def test_flags_may_be_written_as_numbers_elsewhere_and_anything_else_is_counted():
    features, _, _ = matrix({"old": ["1", "0"]})
    bags, unknown = features.read({"old": ["1.0", "0.0", "", "yes", "2"]}, 5)
    assert (bags.starts.tolist(), bags.values.tolist(), unknown) == ([0, 1, 1, 1, 1, 1], [1], 2)


def test_text_is_cut_by_the_tokenizer_it_is_given():
    features, dense, _ = matrix(
        {"abstract": ["b a b b", "a"]}, lambda text: [ord(w) - ord("a") for w in text.split()], 2
    )
    assert features.kinds == {"abstract": "category"}  # a cell of two has a space: not mostly
    features, dense, _ = matrix({"text": ["b a b b", "a"]}, lambda text: [ord(w) - ord("a") for w in text.split()], 2)
    assert dense.tolist() == [[0.25, 0.75], [1, 0]]


def test_features_read_another_table_as_they_learned_the_first():
    features, _, _ = matrix({"year": ["0", "2"], "venue": ["KDD", "ICML"]})
    again = Features.from_dict(features.as_dict())
    assert again == features
    bags, unknown = again.read({"venue": ["KDD", "ACL"], "year": ["3", "1"]}, 2)
    assert (bags.starts.tolist(), bags.places.tolist(), bags.values.tolist(), unknown) == (
        [0, 2, 3],
        [0, 2, 0],
        [2, 1, 0],
        1,
    )
    with pytest.raises(CorpusError, match="no column called 'year', which the model learned from; there are venue"):
        again.read({"venue": ["KDD"]}, 1)
    with pytest.raises(CorpusError, match="'year' held only numbers where the model learned; here it holds 'old'"):
        again.read({"venue": ["KDD"], "year": ["old"]}, 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "nodes.tsv is empty"),
        ("id\tlabel\n", "holds a header and nothing below it"),
        ("id\tlabel\na\t1\na\t2\n", "nodes.tsv:3: the id 'a' stands in line 2 already"),
        ("id\tlabel\n\t1\n", "nodes.tsv:2: a node without an id"),
        ("id\tsplit\na\ttrian\n", "nodes.tsv:2: the split 'trian' is none of train, validation and test"),
        ("id\tlabel\na\t1\tx\n", "nodes.tsv:2: 3 columns where 2 are named: id, label"),
        ("id\tage\tage\na\t1\t2\n", "two columns are called 'age'"),
        ("a\tb\tc\td\te\n", "no header row with a column called 'id', and what 5 columns"),
        ("\tid\tlabel\n0\ta\t1\n", "nodes.tsv:2: '0' stands in column 1, which has no name in the header"),
    ],
)
def test_tables_that_cannot_be_read_are_refused_with_file_and_line(tmp_path, text, message):
    path = written(tmp_path, "nodes.tsv", text)
    with pytest.raises(CorpusError) as refusal:
        read_nodes(path)
    assert message in str(refusal.value)


def test_a_quote_that_never_closes_is_refused_with_its_line(tmp_path):
    with pytest.raises(CorpusError, match=r"nodes\.csv:2: not CSV"):
        read_nodes(written(tmp_path, "nodes.csv", 'id,text\na,"x\nb,y\n'))


def graph_of(folder: Path, nodes: str, edges: str = "a\tb\n"):
    table = read_nodes(written(folder, "nodes.tsv", nodes))
    schema = Schema(Features.learn(table.columns), learn_classes(table))
    return make_graph(table, written(folder, "edges.tsv", edges), schema), table


def test_a_graph_survives_its_folder(tmp_path):
    graph, _ = graph_of(
        tmp_path, "id\tname\tlabel\tsplit\tx\na\tAnna\t1\ttest\t3\nb\tBen\t?\t-\t4\nc\tCleo\t2\tdev\t5\n"
    )
    assert (graph.labels.tolist(), graph.splits.tolist()) == ([0, -1, 1], [TEST, NONE, VALIDATION])
    save_graph(graph, tmp_path / "data")
    again = open_graph(tmp_path / "data")
    assert (again.ids, again.names) == (["a", "b", "c"], ["Anna", "Ben", "Cleo"])
    for name in ("labels", "splits", "sources", "targets"):
        assert np.array_equal(getattr(again, name), getattr(graph, name))
    assert np.array_equal(again.features.values, graph.features.values)
    (tmp_path / "data" / "graph.safetensors").write_bytes(b"damaged")
    with pytest.raises(RunError, match="cannot be read"):
        open_graph(tmp_path / "data")


def test_without_a_split_a_fifth_is_held_out_by_the_seed(tmp_path):
    rows = "".join(f"n{i}\t{i % 2}\tx{i % 3}\n" for i in range(100))
    graph, table = graph_of(tmp_path, "id\tlabel\tvenue\n" + rows + "u\t\tx1\n", "n0\tn1\n")
    one, same, other = (hold_out_nodes(graph, table.splits is not None, seed) for seed in (1, 1, 2))
    assert (len(one.nodes(TRAIN)), len(one.nodes(VALIDATION)), one.splits[100]) == (80, 20, NONE)
    assert np.array_equal(one.splits, same.splits) and not np.array_equal(one.splits, other.splits)


def test_a_given_split_is_kept_and_only_a_missing_validation_set_is_drawn(tmp_path):
    rows = "".join(f"n{i}\t{i % 2}\t{'train' if i < 10 else 'test'}\t{i}\n" for i in range(20))
    graph, _ = graph_of(tmp_path, "id\tlabel\tsplit\tx\n" + rows, "n0\tn1\n")
    held = hold_out_nodes(graph, True, 1)
    assert (len(held.nodes(TRAIN)), len(held.nodes(VALIDATION)), len(held.nodes(TEST))) == (8, 2, 10)
    assert set(held.nodes(VALIDATION)) <= set(range(10))


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ("id\tx\na\t1\nb\t2\n", "two classes or more is wanted to learn from; it has none"),
        ("id\tlabel\tx\na\tred\t1\nb\tred\t2\n", "it has only 'red'"),
    ],
)
def test_too_few_classes_are_refused(tmp_path, nodes, message):
    with pytest.raises(CorpusError, match=message):
        graph_of(tmp_path, nodes)


def test_cora_has_the_numbers_of_its_readme(data):
    table = read_nodes(data / "cora" / "nodes.tsv")
    schema = Schema(Features.learn(table.columns), learn_classes(table))
    graph = make_graph(table, data / "cora" / "edges.tsv", schema)
    counts = (len(graph), len(graph.sources), schema.features.size, len(schema.classes))
    assert counts == (2708, 5278, 1432, 7)  # one of the 1,433 words stands in no paper
    assert [len(graph.nodes(split)) for split in (TRAIN, VALIDATION, TEST)] == [140, 500, 1000]
