"""The engine that is fastest for files: our own search for Transformers in C, in float32, each core busy with batches of its own.

It keeps the rules of the search in torch, loops and greatest lengths among them, so nothing has to be asked twice; and its answers do not
depend on their neighbours. What it cannot do is done in torch.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kente.config import DecodeConfig, ModelConfig, TransformerConfig
from kente.data.shortlist import Shortlist
from kente.data.tokenizer import BOS, EOS, PAD, UNK
from kente.decode.answers import CUT, LATE, LOOP_RUNS, LOOPED, Hypothesis, end_of_loop, no_answer, too_late
from kente.decode.conversion import EPSILONS, SINUSOIDS, Numbers, position_table
from kente.decode.engine import Deadline, Engine, Links, Question, ReadBack, rows_for
from kente.decode.native import Answers, NativeMissing, Questions, Shape, can_round, library
from kente.decode.weights import Array, Weights

if TYPE_CHECKING:
    from kente.decode.torch_engine import TorchEngine

ACTIVATIONS = {"relu": 0, "gelu": 1, "gelu-tanh": 2, "silu": 3, "swiglu": 3}
"""As native/network.h numbers them."""
PLACED = (*SINUSOIDS, "learned", "none")
HEAD = 16
"""Sizes of heads are multiples of the numbers that processors work on at once."""
WIDEST = 64
"""Hypotheses of a beam at most."""
ROWS = 32
"""Rows of a batch: enough to make use of each weight that is fetched, few enough to stay near the processor."""
ENDED, WAS_LOOPED, WAS_CUT = 1, 2, 4
LOOK = 0.002
"""Seconds between two looks at the deadline."""
NEVER = (PAD, UNK, BOS)

Ints = NDArray[np.int32]


def obstacle(config: ModelConfig) -> str | None:
    """Why the compiled search cannot carry a model with these settings; None if it can."""
    if not isinstance(config, TransformerConfig):
        return f"it carries Transformers, and this is a {config.kind} model"
    if config.experts:
        return f"it has no mixture of experts (model.experts = {config.experts})"
    if config.span != "full" or config.activations == "reversible":
        return "it looks at everything, in layers that are not reversible"
    if config.positions not in PLACED:
        return f"it has no positions inside attention (model.positions = {config.positions})"
    if config.width // config.heads % HEAD:
        return f"it has heads of {HEAD} values or a multiple of that, not of {config.width // config.heads}"
    return None


class Network:
    """A Transformer's weights, laid out by the library; given back when nobody holds it any more."""

    def __init__(self, config: TransformerConfig, arrays: Mapping[str, Array], numbers: Numbers = "float32") -> None:
        self._library = library()
        self.rounded = numbers == "int8"
        if self.rounded and not can_round():
            raise NativeMissing("its products of int8 were not compiled for this processor")
        tensors = _tensors(config, Weights(arrays))
        self.vocabulary = len(tensors[1])  # type: ignore[arg-type]
        shape = Shape(
            width=config.width,
            heads=config.heads,
            inner=config.feedforward,
            encoder_layers=config.encoder_layers,
            decoder_layers=config.decoder_layers,
            source_words=len(tensors[0]),  # type: ignore[arg-type]
            target_words=self.vocabulary,
            longest=config.max_length,
            pre=config.norm_place == "pre",
            rms=config.norm == "rms",
            activation=ACTIVATIONS[config.activation],
            gated=config.activation == "swiglu",
            rounded=self.rounded,
            epsilon=config.norm_epsilon or EPSILONS[config.norm],
            scale=config.width**0.5 if config.scaled else 1.0,
        )
        self.longest = config.max_length
        tensors = [None if tensor is None else np.ascontiguousarray(tensor, dtype=np.float32) for tensor in tensors]
        pointers = (ctypes.c_void_p * len(tensors))(*(None if t is None else t.ctypes.data for t in tensors))
        self._model = self._library.kente_model(ctypes.byref(shape), pointers)
        if not self._model:
            raise MemoryError("no memory for the model")

    def __del__(self) -> None:
        if getattr(self, "_model", None):
            self._library.kente_free(self._model)

    def search(self, questions: Questions, answers: Answers, stop: ctypes.c_int) -> None:
        """Fill in the answers; other Python threads go on meanwhile."""
        if self._library.kente_search(self._model, ctypes.byref(questions), ctypes.byref(answers), ctypes.byref(stop)):
            raise MemoryError("no memory for the search; a smaller decode.batch_tokens or beam needs less")


def _tensors(config: TransformerConfig, left: Weights) -> list[Array | None]:
    """In the order in which native/search.c takes them; None for what this model has not."""

    def linear(name: str, bias: bool) -> list[Array | None]:
        return [left.take(f"{name}.weight"), left.take(f"{name}.bias") if bias else None]

    def norm(name: str) -> list[Array | None]:
        return [left.take(f"{name}.weight"), left.take(f"{name}.bias") if config.norm == "layer" else None]

    def layer(name: str, cross: bool) -> list[Array | None]:
        found = norm(f"{name}.attention_residual.norm")
        found += linear(f"{name}.attention.query_key_value", config.biases)
        found += linear(f"{name}.attention.output", config.biases)
        if cross:
            found += norm(f"{name}.cross_residual.norm")
            for part in ("query", "key_value", "output"):
                found += linear(f"{name}.cross.{part}", config.biases)
        found += norm(f"{name}.feedforward_residual.norm")
        for part in ("inner", "outer"):
            found += linear(f"{name}.feedforward.{part}", config.activation != "swiglu")
        return found

    pre = config.norm_place == "pre"
    found: list[Array | None] = [*left.tables(config.tie)]
    found.append(left.output_bias(config.tie) if config.output_bias else None)
    found += [position_table(config, side, left) for side in ("source", "target")]
    found += [tensor for side in ("encoder", "decoder") for tensor in (norm(f"{side}.norm") if pre else [None, None])]
    for number in range(config.encoder_layers):
        found += layer(f"encoder.layers.{number}", cross=False)
    for number in range(config.decoder_layers):
        found += layer(f"decoder.layers.{number}", cross=True)
    left.require_all_taken()
    return found


class NativeEngine:
    """A Transformer, searched in C on `threads` cores; with a `shortlist` only its words are weighed.

    `beside` is an engine of the same model that reads answers again, and `in_torch` loads it in torch when it must.
    """

    def __init__(
        self,
        network: Network,
        threads: int,
        beside: Engine | None,
        in_torch: Callable[[], TorchEngine],
        shortlist: Shortlist | None = None,
    ) -> None:
        self.network, self.threads, self.beside, self.in_torch = network, threads, beside, in_torch
        self.shortlist = shortlist
        self.name = "native int8" if network.rounded else "native"
        self._listed: dict[str, Ints] = {}
        if shortlist is not None:  # the table may be a part of a wider one: its rows lie where they lay
            self._listed = {"table": shortlist.table.view(np.int32), "always": shortlist.always.astype(np.int32)}

    def with_shortlist(self, shortlist: Shortlist | None) -> NativeEngine:
        """The same model, weighing other words."""
        return NativeEngine(self.network, self.threads, self.beside, self.in_torch, shortlist)

    def align(self, questions: Sequence[Question], answers: Sequence[Sequence[int]]) -> list[Links]:
        return (self.beside or self.in_torch()).align(questions, answers)

    def read_back(self, questions: Sequence[Question], answers: Sequence[Sequence[int]]) -> list[ReadBack]:
        return (self.beside or self.in_torch()).read_back(questions, answers)

    @staticmethod
    def cannot(config: DecodeConfig, n_best: int = 1) -> str | None:
        """Why this is left to torch; None where it is not."""
        if config.sample:
            return "it draws nothing at random"
        if rows_for(config, n_best) > WIDEST:
            return f"its beam has at most {WIDEST} hypotheses"
        return None

    def search(
        self, questions: Sequence[Question], config: DecodeConfig, *, n_best: int = 1, deadline: Deadline | None = None
    ) -> list[list[Hypothesis]]:
        """Answers to the questions; late, as far as they have come."""
        places = max((max(len(q.source), q.cap, len(q.prefix)) + 1 for q in questions), default=0)
        if self.cannot(config, n_best) is not None or places > self.network.longest:
            return self.in_torch().search(questions, config, n_best=n_best, deadline=deadline)
        answers = [[too_late()] for _ in questions]
        stop = ctypes.c_int(0)

        def work(places: list[int]) -> None:
            if not stop.value:
                batch = [questions[place] for place in places]
                for place, found in zip(places, self._searched(batch, config, n_best, stop), strict=True):
                    answers[place] = found

        groups = list(_batches(questions, config, rows_for(config, n_best), self.threads))
        if len(groups) == 1 and deadline is None:
            work(groups[0])
            return answers
        with ThreadPoolExecutor(self.threads) as pool:
            futures = [pool.submit(work, places) for places in groups]
            _finish(futures, deadline, stop)
        return answers

    def _searched(
        self, batch: Sequence[Question], config: DecodeConfig, n_best: int, stop: ctypes.c_int
    ) -> list[list[Hypothesis]]:
        sources = [[*question.source, EOS] for question in batch]
        caps = np.array([max(question.cap, len(question.prefix)) for question in batch], np.int32)
        given = {
            **_flat("source", sources),
            **_flat("prefix", [question.prefix for question in batch]),
            "caps": caps,
            "guarded": np.array([end_of_loop(question.source) is None for question in batch], np.int32),
            "loop_runs": np.array(LOOP_RUNS, np.int32),
            "never": np.array(NEVER, np.int32),
            **self._listed,
        }
        asked = Questions(
            sentences=len(batch),
            beam=rows_for(config, n_best),
            keep=n_best,
            no_repeat=config.no_repeat,
            eos=EOS,
            bos=BOS,
            longest=max(1, int(caps.max())),
            power=config.length_penalty,
            nevers=len(NEVER),
            depth=self._listed["table"].shape[1] if self._listed else 0,
            deep=self._listed["table"].strides[0] // np.int32().itemsize if self._listed else 0,
            alwayses=len(self._listed["always"]) if self._listed else 0,
            **{name: array.ctypes.data for name, array in given.items()},
        )
        shape = (len(batch), n_best)
        ids, lengths, flags = (np.zeros(size, np.int32) for size in ((*shape, asked.longest), shape, shape))
        totals, scores = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
        self.network.search(asked, Answers(*(a.ctypes.data for a in (ids, lengths, flags, totals, scores))), stop)
        return [
            [
                _hypothesis(row[:length], score, total, flag)
                for row, length, flag, total, score in zip(*rows, strict=True)
                if length >= 0
            ]
            or [no_answer()]
            for rows in zip(*(array.tolist() for array in (ids, lengths, flags, totals, scores)), strict=True)
        ]


def _flat(name: str, rows: Sequence[Sequence[int]]) -> dict[str, Ints]:
    """All rows one behind the other, and where each begins."""
    starts = np.cumsum([0, *map(len, rows)]).astype(np.int32)
    return {name: np.fromiter((i for row in rows for i in row), np.int32, int(starts[-1])), f"{name}_starts": starts}


def _hypothesis(ids: list[int], score: float, total: float, flags: int) -> Hypothesis:
    ended = bool(flags & ENDED)
    warnings = (LOOPED,) * bool(flags & WAS_LOOPED) + (CUT,) * bool(flags & WAS_CUT) + (LATE,) * (not ended)
    return Hypothesis(ids, score, total, ended and not flags & WAS_CUT, warnings)


def _batches(questions: Sequence[Question], config: DecodeConfig, beam: int, threads: int) -> Iterator[list[int]]:
    """Places of questions, longest first; so few together that every core has some, and the last to finish is soon done."""
    order = sorted(range(len(questions)), key=lambda place: -len(questions[place].source))
    most = max(1, min(ROWS // beam, -(-len(order) // threads)))
    at = 0
    while at < len(order):
        length = len(questions[order[at]].source) + 1
        count = max(1, min(most, config.batch_tokens // (beam * length)))
        yield order[at : at + count]
        at += count


def _finish(futures: Sequence[Future[None]], deadline: Deadline | None, stop: ctypes.c_int) -> None:
    """Wait until all are done, or time is out; what was raised, by one of them or the deadline, is raised when nothing is at work any more."""
    try:
        while deadline is not None and wait(futures, LOOK).not_done:
            if deadline():
                stop.value, deadline = 1, None
        for future in futures:
            future.result()
    except BaseException:
        stop.value = 1
        raise
