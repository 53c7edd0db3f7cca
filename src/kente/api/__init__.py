"""The verbs. Command line, server and notebooks all call these: check, train, resume, load, evaluate, score, summary, info, compare,
report, lecture, look, export, demo, detector, translate_document; adapt, augment; pretrain, generate, evaluate_text, load_encoder, import_run;
classify_train, classify, classify_report, contrast, embed, similarity, match, cluster; graph_train, graph_predict, graph_look.

Each is imported when it is first used: looking at text should not wait, or pay in memory, for torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kente.api.adapting import adapt
    from kente.api.augmenting import Augmented, augment
    from kente.api.classifying import Classifier, Prediction, classify, classify_report, classify_train, load_classifier
    from kente.api.clustering import Clustered, cluster
    from kente.api.comparison import Compared, compare, report
    from kente.api.corpora import Data, check
    from kente.api.demonstration import demo
    from kente.api.embedding import contrast, embed, load_embedder, similarity
    from kente.api.encoding import Encoder, load_encoder
    from kente.api.exporting import Exported, carriers, export
    from kente.api.graphs import GraphFiles, graph_look, graph_predict, graph_train
    from kente.api.importing import Imported, import_run
    from kente.api.lecturing import experiments, lecture
    from kente.api.lifecycle import TrainResult, resume
    from kente.api.loading import load
    from kente.api.looking import draw, example, links_of_words, look
    from kente.api.matching import Match, match
    from kente.api.pretraining import TextEvaluation, evaluate_text, pretrain
    from kente.api.texts import detector, is_lowercase, translate_document
    from kente.api.training import train
    from kente.api.using import evaluate, info, score, summary
    from kente.api.writing import generate, load_writer

__all__ = [
    "Augmented",
    "Classifier",
    "Clustered",
    "Compared",
    "Data",
    "Encoder",
    "Exported",
    "GraphFiles",
    "Imported",
    "Match",
    "Prediction",
    "TextEvaluation",
    "TrainResult",
    "adapt",
    "augment",
    "carriers",
    "check",
    "classify",
    "classify_report",
    "classify_train",
    "cluster",
    "compare",
    "contrast",
    "demo",
    "detector",
    "draw",
    "embed",
    "evaluate",
    "evaluate_text",
    "example",
    "experiments",
    "export",
    "generate",
    "graph_look",
    "graph_predict",
    "graph_train",
    "import_run",
    "info",
    "is_lowercase",
    "lecture",
    "links_of_words",
    "load",
    "load_classifier",
    "load_embedder",
    "load_encoder",
    "load_writer",
    "look",
    "match",
    "pretrain",
    "report",
    "resume",
    "score",
    "similarity",
    "summary",
    "train",
    "translate_document",
]

_HOMES = {
    "adapting": ("adapt",),
    "augmenting": ("Augmented", "augment"),
    "classifying": (
        "Classifier",
        "Prediction",
        "classify",
        "classify_report",
        "classify_train",
        "load_classifier",
    ),
    "clustering": ("Clustered", "cluster"),
    "comparison": ("Compared", "compare", "report"),
    "corpora": ("Data", "check"),
    "demonstration": ("demo",),
    "exporting": ("Exported", "carriers", "export"),
    "embedding": ("contrast", "embed", "load_embedder", "similarity"),
    "encoding": ("Encoder", "load_encoder"),
    "graphs": ("GraphFiles", "graph_look", "graph_predict", "graph_train"),
    "importing": ("Imported", "import_run"),
    "lecturing": ("experiments", "lecture"),
    "lifecycle": ("TrainResult", "resume"),
    "loading": ("load",),
    "looking": ("draw", "example", "links_of_words", "look"),
    "texts": ("detector", "is_lowercase", "translate_document"),
    "matching": ("Match", "match"),
    "pretraining": ("TextEvaluation", "evaluate_text", "pretrain"),
    "training": ("train",),
    "using": ("evaluate", "info", "score", "summary"),
    "writing": ("generate", "load_writer"),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"kente.api.{home}"), name)
    raise AttributeError(f"module 'kente.api' has no attribute {name!r}")
