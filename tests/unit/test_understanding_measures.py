"""Scores of classifiers, similarities, clusters and neighbours against closed forms and against scikit-learn and scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kente.decode import nearest as search
from kente.decode.embedder import unit
from kente.errors import UsageError
from kente.measure.classes import (
    accuracy_of,
    calibration_error,
    confusion_matrix,
    each_class,
    macro_f1,
    report_of,
    wilson,
)
from kente.measure.clusters import marking_words, normalised_information, purity, words_of
from kente.measure.grouping import choose_clusters, flat, hdbscan, kmeans, main_directions, spread
from kente.measure.similarity import ranks, spearman
from kente.show.classes import class_page
from kente.show.clusters import Dot, Group, Grouping, cluster_page
from kente.show.scatter import Points, scatter


@pytest.fixture
def answers():
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 4, 300)
    predicted = np.where(rng.random(300) < 0.6, labels, rng.integers(0, 4, 300))
    return labels, predicted


# ---- classes ----------------------------------------------------------------------------------------------------------------


def test_scores_of_classes_by_hand():
    labels, predicted = np.array([0, 0, 0, 1, 1, 2]), np.array([0, 0, 1, 1, 0, 1])
    confusion = confusion_matrix(labels, predicted, 3)
    assert confusion.tolist() == [[2, 1, 0], [1, 1, 0], [0, 1, 0]]
    first, second, third = each_class(confusion, "abc")
    assert (first.precision, first.recall, first.texts, first.predicted) == pytest.approx((200 / 3, 200 / 3, 3, 3))
    assert second.f1 == pytest.approx(40) and (third.precision, third.recall, third.f1) == (0, 0, 0)
    assert accuracy_of(confusion).value == 50 and macro_f1(confusion).value == pytest.approx((200 / 3 + 40) / 3)


def test_scores_of_classes_are_scikit_learns(answers):
    metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed")
    labels, predicted = answers
    confusion = confusion_matrix(labels, predicted, 4)
    assert confusion.tolist() == metrics.confusion_matrix(labels, predicted).tolist()
    theirs = metrics.precision_recall_fscore_support(labels, predicted)
    ours = [(one.precision / 100, one.recall / 100, one.f1 / 100, one.texts) for one in each_class(confusion, "abcd")]
    assert np.allclose(np.array(ours).T, theirs)
    assert macro_f1(confusion).value / 100 == pytest.approx(metrics.f1_score(labels, predicted, average="macro"))


def test_wilsons_interval_holds_the_shares_from_which_what_was_seen_is_not_far():
    for right, total in ((0, 10), (7, 10), (950, 1000), (10, 10)):
        low, high = wilson(right, total)
        assert 0 <= low <= right / total <= high <= 1
        for edge in (low, high):
            if 0 < edge < 1:  # the equation that defines it
                assert abs(right / total - edge) == pytest.approx(1.959964 * math.sqrt(edge * (1 - edge) / total))


def test_confidence_that_is_never_right_by_as_much_as_it_says_is_off():
    sure = np.array([[0.95, 0.05]] * 10, np.float32)
    labels = np.array([0] * 7 + [1] * 3)
    assert calibration_error(sure, labels) == pytest.approx(25, abs=1e-4)
    assert calibration_error(sure, np.zeros(10, int)) == pytest.approx(5, abs=1e-4)


def test_a_report_tells_people_and_programs_the_same_and_its_page_escapes_texts():
    texts = ["<b>one</b>", "two", "three"]
    weights = np.array([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6]], np.float32)
    report = report_of("runs/x", "test.tsv", ["bad", "good"], texts, np.array([1, 0, 1]), weights)
    told = "\n".join(report.lines())
    assert "accuracy 66.7 % (95 %:" in told and "1 x good said to be bad" in told and "test.tsv | 3 texts" in told
    assert report.as_dict()["confusion"] == ((1, 0), (1, 1))
    (mistake,) = report.mistakes
    assert (mistake.text, mistake.label, mistake.predicted) == ("<b>one</b>", "good", "bad")
    page = class_page(report)
    assert "&lt;b&gt;one&lt;/b&gt;" in page and "<b>one</b>" not in page and "--share:0.500" in page
    right = report_of("x", "t", ["a", "b"], texts, np.array([0, 0, 1]), weights)
    assert "nothing was wrong" in right.lines()[-1] and "Surest mistakes" not in class_page(right)


# ---- similarity -------------------------------------------------------------------------------------------------------------


def test_equals_share_their_rank_and_only_order_matters():
    assert ranks([3.0, 1.0, 3.0, 2.0]).tolist() == [3.5, 1, 3.5, 2]
    assert spearman([1, 2, 3, 4], [1, 10, 100, 1000]) == pytest.approx(1)
    assert spearman([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    assert math.isnan(spearman([1, 1, 1], [1, 2, 3]))


def test_spearman_is_scipys():
    stats = pytest.importorskip("scipy.stats", reason="scipy is not installed")
    rng = np.random.default_rng(1)
    one, other = rng.integers(0, 9, 200) / 2, rng.normal(size=200)
    assert spearman(one, other) == pytest.approx(stats.spearmanr(one, other)[0])


# ---- clusters ---------------------------------------------------------------------------------------------------------------


def test_purity_and_information_by_hand():
    clusters, labels = np.array([0, 0, 1, 1]), np.array([7, 7, 8, 8])
    assert purity(clusters, labels) == 1 and normalised_information(clusters, labels) == pytest.approx(1)
    assert normalised_information(clusters, np.array([7, 8, 7, 8])) == pytest.approx(0)
    assert purity(np.array([0, 0, 0, 1]), labels) == pytest.approx(3 / 4)
    assert normalised_information(np.zeros(4, int), np.zeros(4, int)) == 1


def test_information_is_scikit_learns(answers):
    metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed")
    assert normalised_information(*answers) == pytest.approx(metrics.normalized_mutual_info_score(*answers))


def test_words_that_mark_a_cluster_are_those_the_others_lack():
    texts = ["the red cat", "the red dog", "the red fox", "the c++ code", "the c++ bug", "the c++ test"] * 5
    clusters = np.array([0, 0, 0, 1, 1, 1] * 5)
    marks = marking_words(texts, clusters, most=2)
    assert marks[0][0] == "red" and marks[1][0] == "c++" and "the" not in marks[0] + marks[1]
    assert words_of("Don't use ASP.NET, C# 3.5!") == ["don't", "use", "asp.net", "c#", "3.5"]
    assert marking_words(["x", "y"], np.array([0, 1])) == {0: [], 1: []}


@pytest.fixture
def clouds():
    rng = np.random.default_rng(1)
    middles = np.eye(3, 8) * 4
    return np.concatenate([middle + 0.2 * rng.normal(size=(20, 8)) for middle in middles]).astype(np.float32)


def test_clouds_that_lie_apart_are_found_and_drawn_apart(clouds):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    truth = np.repeat([0, 1, 2], 20)
    assert choose_clusters(clouds) == 3
    assert purity(kmeans(clouds, 3), truth) == 1
    dense = hdbscan(clouds, 5)  # what lies at the rim of a cloud may be in none
    assert purity(dense[dense >= 0], truth[dense >= 0]) == 1 and (dense >= 0).mean() > 0.6
    assert len(set(kmeans(np.repeat(clouds[:2], 3, axis=0), 4).tolist())) == 2
    assert kmeans(clouds, 3, seed=4).tolist() == kmeans(clouds, 3, seed=4).tolist()
    assert purity(kmeans(flat(clouds), 3), truth) == 1
    with pytest.raises(UsageError, match="60 texts cannot make 61 clusters"):
        kmeans(clouds, 61)
    assert flat(clouds[:3]).shape == (3, 2)


def test_main_directions_are_those_of_most_variance(clouds):
    found = main_directions(clouds, 2)
    values = np.linalg.eigvalsh(np.cov(clouds.T))[::-1]
    assert np.allclose(np.var(found, axis=0, ddof=1), values[:2], rtol=1e-3)
    assert spread(10, 4).tolist() == [0, 3, 6, 9] and spread(3, 9).tolist() == [0, 1, 2]


def test_the_page_of_clusters_shows_words_labels_and_every_text_as_text():
    groups = (Group(0, 2, ("red", "cat"), ("<i>a</i>",), (("animal", 2),)), Group(-1, 1, (), ("b",)))
    page = cluster_page(Grouping("runs/x", 3, groups, [Dot(0, 0, 0, "<i>a</i>"), Dot(1, 2, -1, "b")], 0.5, 0.25))
    assert "red, cat" in page and "animal (100 %)" in page and "0.250" in page and "<i>a</i>" not in page
    assert page.count("<path") >= 2 and "none" in page
    alone = scatter([Points("one", [(1.0, 1.0, "x")])], title="t")
    assert "nan" not in alone and "inf" not in alone


# ---- neighbours -------------------------------------------------------------------------------------------------------------


def test_exact_neighbours_are_those_of_a_full_sort(monkeypatch):
    monkeypatch.setattr(search, "BLOCK", 7)
    monkeypatch.setattr(search, "TOGETHER", 3)
    rng = np.random.default_rng(1)
    corpus, queries = (unit(rng.normal(size=(n, 6)).astype(np.float32)) for n in (50, 8))
    ids, cosines = search.search_in(corpus)(queries, 5)
    wanted = np.argsort(-(queries @ corpus.T), axis=1)[:, :5]
    assert ids.tolist() == wanted.tolist()
    assert np.allclose(cosines, np.take_along_axis(queries @ corpus.T, wanted, 1), atol=1e-6)
    assert search.search_in(corpus[:2])(queries, 5)[0].shape == (8, 2)


@pytest.mark.parametrize(("kind", "library"), [("hnsw", "hnswlib"), ("faiss", "faiss")])
def test_an_index_finds_nearly_all_of_them(kind, library):
    pytest.importorskip(library, reason=f"{library} is not installed")
    rng = np.random.default_rng(1)
    corpus, queries = (rng.normal(size=(n, 16)).astype(np.float32) for n in (2000, 20))
    exact, _ = search.search_in(corpus)(queries, 10)
    found, cosines = search.search_in(corpus, kind)(queries, 10)
    shared = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(exact, found, strict=True)])
    assert shared > 0.95 and np.allclose(cosines[0, 0], unit(queries[:1]) @ unit(corpus[found[0, :1]]).T, atol=1e-5)


def test_a_missing_index_library_is_named(monkeypatch):
    import importlib

    def refuse(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", refuse)
    with pytest.raises(UsageError, match="--index hnsw needs hnswlib: pip install hnswlib"):
        search.search_in(np.eye(3, dtype=np.float32), "hnsw")
