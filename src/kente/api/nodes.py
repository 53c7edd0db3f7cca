"""Node classification as a task: one graph, some of whose nodes have labels."""

from __future__ import annotations

from typing import Any

from torch import nn

from kente.config import Config, GraphConfig, OptimiserConfig, TrainConfig
from kente.data.batches import Feed
from kente.data.graphs import TRAIN, VALIDATION
from kente.models.build import build
from kente.models.summary import describe
from kente.runs import Score
from kente.train.budget import Chooser, measured_pace
from kente.train.card import About
from kente.train.graphs import GraphBatch, GraphBatches, NodeCrossEntropy, network_inputs, node_validator
from kente.train.objectives import Objective
from kente.train.prepare_graph import GraphFiles, prepare_graph, read_graph
from kente.train.task import Task


def graph_settings() -> Config:
    """Where settings for graphs begin: those of the GAT paper, validated every ten updates and stopped after a hundred without a better one."""
    return Config(
        model=GraphConfig(),
        optimiser=OptimiserConfig(rate=5e-3, schedule="constant", warmup=0, betas=(0.9, 0.999), epsilon=1e-8, clip=0.0),
        train=TrainConfig(
            task="nodes", label_smoothing=0.0, average="none", validate_every=10, patience=10, max_updates=5000
        ),
    )


def graph_model(config: Config) -> GraphConfig:
    """The [model] settings of a run on a graph, which are always those of a network over graphs."""
    assert isinstance(config.model, GraphConfig)
    return config.model


class Nodes(Task):
    """-log p(class | node, graph), on the whole graph at every update."""

    main = "loss"  # accuracy moves in steps, and on few nodes many weights share the best one

    def prepare(self, request: dict[str, Any], chooser: Chooser) -> dict[str, Any]:
        facts = prepare_graph(self.run, GraphFiles.from_dict(request["graph"]), chooser.config, self.reporter)
        self.open()
        return facts

    def open(self) -> None:
        self.graph, self.schema = read_graph(self.run, None, self.reporter)
        inputs = network_inputs(self.graph, graph_model(self.run.config), self.schema.features.size)
        self.train, self.held_out = (
            GraphBatch.of(self.graph, inputs, split).to(self.device) for split in (TRAIN, VALIDATION)
        )

    def fit_to_minutes(self, chooser: Chooser, seconds: float) -> tuple[int, float]:
        pace = measured_pace(
            chooser.config,
            lambda config: (self.model(config), self.objective(config), self.batches(config)),
            self.device,
        )
        return max(1, int(seconds / pace)), pace

    def fit_to_data(self, chooser: Chooser) -> None:
        """Nothing to choose: the whole graph is one batch, and validation says when to stop."""

    def validation_seconds(self, config: Config) -> float:
        return 0.1

    def model(self, config: Config) -> nn.Module:
        return build(config.model, self.schema.features.size, len(self.schema.classes))

    def objective(self, config: Config) -> Objective:
        return NodeCrossEntropy(config.train.label_smoothing, graph_model(config).penalty)

    def batches(self, config: Config) -> Feed:
        return GraphBatches(self.train)

    def validate(self, model: nn.Module, step: int) -> dict[str, Score]:
        return node_validator(self.held_out)(model, step)

    def about(self, facts: dict[str, Any]) -> About:
        name = self.run.path.name
        return About(
            what=f"A network over graphs ({describe(self.run.config.model)})",
            use=f"```\nkente graph predict {name} --nodes F --edges F\nkente graph look {name}\n```",
            vocabulary=f"{facts['features']:,} features ({facts['columns']}), {facts['classes']} classes",
            read=f"A graph of {facts['nodes']:,} nodes and {facts['edges']:,} edges; {facts['train_nodes']:,} labels to learn from, "
            f"{facts['validation_nodes']:,} to validate on.",
            measured="Validation; `kente graph predict` scores any labelled nodes.",
            limits="It puts nodes into the classes it was shown, whatever they are, and knows only the features it was shown. "
            "Attention says what a layer mixed, not why the answer is what it is.",
        )
