"""How well clusters agree with known labels, and which words mark a cluster. Plain counting; finding clusters is `grouping`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
WORD = re.compile(r"[^\W_]+(?:['’+#.-]?[^\W_]+)*[+#]*")
"""Letters and digits, with what may stand inside or after them: don't, c++, c#, asp.net."""
PRIOR = 500.0
"""Words that the prior is worth: it keeps rare words from looking telling by chance."""


def crossed(clusters: Numbers, labels: Numbers) -> Numbers:
    """(K, L) how many have each cluster and each label."""
    _, rows = np.unique(clusters, return_inverse=True)
    _, columns = np.unique(labels, return_inverse=True)
    table = np.zeros((rows.max() + 1, columns.max() + 1), np.int64)
    np.add.at(table, (rows, columns), 1)
    return table


def purity(clusters: Numbers, labels: Numbers) -> float:
    """sum_k max_l n_kl / n: the share that is right if each cluster is named by its commonest label."""
    return float(crossed(clusters, labels).max(axis=1).sum() / len(labels))


def normalised_information(clusters: Numbers, labels: Numbers) -> float:
    """NMI = 2 I(K; L) / (H(K) + H(L)): 1 where either tells the other, 0 where it tells nothing."""
    joint = crossed(clusters, labels) / len(labels)
    rows, columns = joint.sum(axis=1), joint.sum(axis=0)
    there = joint > 0
    information = float((joint[there] * np.log(joint[there] / np.outer(rows, columns)[there])).sum())
    entropies = _entropy(rows) + _entropy(columns)
    return 2 * information / entropies if entropies else 1.0


def _entropy(shares: NDArray[np.float64]) -> float:
    return float(-(shares[shares > 0] * np.log(shares[shares > 0])).sum())


def words_of(text: str) -> list[str]:
    """The words of a text in small letters."""
    return WORD.findall(text.lower())


def marking_words(texts: Sequence[str], clusters: Numbers, most: int = 8) -> dict[int, list[str]]:
    """For each cluster the words that stand in its texts far more often than in the others.

    Ranked by the log-odds ratio with an informative prior, in standard deviations (Monroe et al., 2008, equations 16 to 22). A word
    counts once for each text.
    """
    inside: dict[int, Counter[str]] = {int(cluster): Counter() for cluster in np.unique(clusters)}
    for text, cluster in zip(texts, clusters.tolist(), strict=True):
        inside[cluster].update(set(words_of(text)))
    everywhere = sum(inside.values(), Counter())
    vocabulary = [word for word, count in everywhere.items() if count > 1]
    if not vocabulary:
        return {cluster: [] for cluster in inside}
    total = np.array([everywhere[word] for word in vocabulary], np.float64)
    prior = PRIOR * total / total.sum()
    found = {}
    for cluster, counts in inside.items():
        here = np.array([counts[word] for word in vocabulary], np.float64)
        scores = _log_odds(here, total - here, prior)
        ranked = sorted(range(len(vocabulary)), key=lambda place: (-scores[place], vocabulary[place]))
        found[cluster] = [vocabulary[place] for place in ranked[:most] if scores[place] > 0]
    return found


def _log_odds(
    here: NDArray[np.float64], elsewhere: NDArray[np.float64], prior: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The difference of the two log-odds over its standard deviation."""

    def log_odds(counts: NDArray[np.float64]) -> NDArray[np.float64]:
        whole = counts.sum() + prior.sum()
        return np.asarray(np.log((counts + prior) / np.maximum(whole - counts - prior, 1e-9)))

    deviation = np.sqrt(1 / (here + prior) + 1 / (elsewhere + prior))
    return np.asarray((log_odds(here) - log_odds(elsewhere)) / deviation)
