"""Going on with a text, word by word: any model that fits `Generator` and was trained on running text.

A model knows no more context than the blocks it was trained on. When as much has been read, it starts again from the later half.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from kente.config import DecodeConfig
from kente.data.texts import encode_text
from kente.data.tokenizer import BOS, EOS, PAD, UNK, Tokenizer
from kente.decode.guards import repeats
from kente.decode.hypothesis import NEVER
from kente.decode.sampling import Sampler
from kente.decode.torch_engine import at_rest
from kente.errors import UsageError
from kente.models.interface import Generator, State, regroup

MOST, END, STOP = "as many tokens as were asked for", "the end of a document", "a stop string"
BROKEN = "�"  # how the first bytes of a character read while the others are missing


@dataclass(frozen=True)
class Manner:
    """How a text is gone on with."""

    most: int = 200
    """Tokens written at most."""
    temperature: float = 1.0
    """Below 1 sharper, above 1 wilder; 0 always writes the likeliest token."""
    top_k: int = 0
    """Only the k likeliest tokens; 0 is all."""
    top_p: float = 1.0
    """Only the likeliest tokens that together have this probability."""
    min_p: float = 0.0
    """Only tokens at least this share as likely as the likeliest one; 0 is all."""
    repetition: float = 1.0
    """Above 1, what was written already (and the prompt) becomes less likely: its logits are divided by this, negative ones multiplied."""
    no_repeat: int = 0
    """Forbid writing any run of this many tokens twice; 0 is off."""
    stop: tuple[str, ...] = ()
    """Texts that end it; they are not shown."""
    seed: int = 1
    """The same seed draws the same words."""

    def __post_init__(self) -> None:
        if self.most < 1:
            raise UsageError(f"at least 1 token can be written, not {self.most}")
        if self.temperature < 0:
            raise UsageError(f"the temperature ({self.temperature}) must be 0 (the likeliest) or more")
        if self.repetition <= 0:
            raise UsageError(f"the repetition penalty ({self.repetition}) must be above 0; 1 is none")
        if not all(self.stop):
            raise UsageError("a stop string cannot be empty")
        self.decoding()

    def decoding(self) -> DecodeConfig:
        """The same in the words of sampling, which check themselves."""
        return DecodeConfig(
            sample=True,
            temperature=self.temperature or 1.0,
            top_k=self.top_k,
            top_p=self.top_p,
            min_p=self.min_p,
            no_repeat=self.no_repeat,
            seed=self.seed,
        )


@dataclass(frozen=True)
class Written:
    """How a text went on."""

    prompt: str
    text: str
    tokens: int
    ended_by: str


@dataclass
class Spelling:
    """Ids as they come, turned into text: whole characters alone, nothing that may be the beginning of a stop string."""

    tokenizer: Tokenizer
    stop: tuple[str, ...]
    line: list[int]  # ids that must be read together: since the last line end
    shown: int = 0  # characters of the line that stand in `text` already, or belong to the prompt
    text: str = ""
    told: int = 0  # characters of the text handed out
    tokens: int = 0
    ended_by: str = ""

    @classmethod
    def after(cls, tokenizer: Tokenizer, prompt: Sequence[int], stop: tuple[str, ...]) -> Spelling:
        last = len(prompt) - next((n for n, number in enumerate(reversed(prompt)) if number == EOS), len(prompt))
        line = list(prompt[last:])
        return cls(tokenizer, stop, line, len(tokenizer.decode(line)))

    def add(self, number: int) -> None:
        """One more id."""
        if number == BOS:
            self.ended_by = END
            return
        self.tokens += 1
        if number == EOS and not self.tokenizer.spells_lines:
            self.text, self.line, self.shown = self.text + "\n", [], 0
        else:
            self.line.append(number)
            spelled = self.tokenizer.decode(self.line)
            if not spelled.endswith(BROKEN):
                self.text += spelled[self.shown :]
                self.line, self.shown = ([], 0) if self._line_is_over(spelled) else (self.line, len(spelled))
        places = [place for stop in self.stop if (place := self.text.find(stop)) >= 0]
        if places:
            self.text, self.ended_by = self.text[: min(places)], STOP

    def _line_is_over(self, spelled: str) -> bool:
        return self.tokenizer.spells_lines and spelled.endswith("\n")

    def news(self) -> str:
        """What has become certain since the last time."""
        held = 0 if self.ended_by else max((len(stop) - 1 for stop in self.stop), default=0)
        end = max(self.told, len(self.text) - held)
        news, self.told = self.text[self.told : end], end
        return news


@dataclass
class Writer:
    """A language model with its tokenizer, ready to write."""

    model: Generator
    tokenizer: Tokenizer
    device: torch.device | str = "cpu"
    window: int | None = None
    """Tokens the model was trained to look back on; None where it does not matter."""
    opening: int = EOS
    """What stands before a text that begins: the end of the line before it, or the mark of a document."""

    def write(self, prompt: str, manner: Manner | None = None, samples: int = 1) -> list[Written]:
        """So many ways of going on with the prompt, all written at once."""
        *_, spellings = self._rows(prompt, manner or Manner(), list(range(samples)))
        return [Written(prompt, row.text, row.tokens, row.ended_by or MOST) for row in spellings]

    def stream(self, prompt: str, manner: Manner | None = None, sample: int = 0) -> Iterator[str]:
        """The text of one sample piece by piece; joined, it is what `write` gives."""
        last: list[Spelling] = []
        for last in self._rows(prompt, manner or Manner(), [sample]):
            if news := last[0].news():
                yield news
        for row in last:
            row.ended_by = row.ended_by or MOST
            if news := row.news():
                yield news

    def ids(self, prompt: str) -> list[int]:
        """What the model reads first."""
        return [self.opening, *encode_text(self.tokenizer, prompt)]

    def _rows(self, prompt: str, manner: Manner, samples: list[int]) -> Iterator[list[Spelling]]:
        """After each token, how far every sample has come."""
        ids = self.ids(prompt)
        rows = [Spelling.after(self.tokenizer, ids, manner.stop) for _ in samples]
        with at_rest(self.model):
            for tokens in self._tokens(ids, manner, samples):
                for row, number in zip(rows, tokens, strict=True):
                    if not row.ended_by:
                        row.add(number)
                yield rows
                if all(row.ended_by for row in rows):
                    return

    @torch.inference_mode()
    def _tokens(self, ids: list[int], manner: Manner, samples: list[int]) -> Iterator[list[int]]:
        """One token for each sample, again and again. A sample's draws depend on seed, prompt and its number alone."""
        sampler = Sampler(manner.decoding(), [ids], max(samples) + 1, [manner.most], torch.device(self.device))
        lines = torch.tensor(samples, device=self.device)
        written = torch.tensor([ids], device=self.device).expand(len(samples), -1)
        state, read = self._start(written[:1, :-1])
        state = regroup(state, torch.zeros_like(lines))
        for place in range(manner.most):
            if self.window is not None and read >= self.window:
                state, read = self._start(written[:, -(self.window // 2) : -1])
            step = self.model.step(state, written[:, -1])
            state, read = step.state, read + 1
            scores = self._scores(step.logits, written, manner)
            if manner.temperature:
                chosen = sampler.draw(scores, lines, torch.full_like(lines, place))
            else:
                chosen = scores.argmax(dim=-1)
            written = torch.cat([written, chosen[:, None]], dim=1)
            yield chosen.tolist()

    def _start(self, ids: Tensor) -> tuple[State, int]:
        """(the state after reading these, how many were read): the last that the window holds."""
        kept = ids if self.window is None else ids[:, max(0, ids.shape[1] - self.window + 1) :]
        return self.model.start(kept, torch.ones_like(kept, dtype=torch.bool)), kept.shape[1]

    def _scores(self, logits: Tensor, written: Tensor, manner: Manner) -> Tensor:
        """log p(token) for each row, -inf where a token may not come next."""
        logits = logits.float()
        if manner.repetition != 1:
            logits = discourage(logits, written, manner.repetition)
        logits[:, [PAD, UNK]] = NEVER
        if manner.no_repeat:
            length = torch.full((len(written),), written.shape[1], device=written.device)
            rows, again = repeats(written, manner.no_repeat, length)
            logits[rows, again] = NEVER
        return logits.log_softmax(dim=-1)


def discourage(logits: Tensor, written: Tensor, penalty: float) -> Tensor:
    """Logits of tokens that stand in `written` (N, T) divided by the penalty, negative ones multiplied (Keskar et al., 2019, section 4.1)."""
    there = logits.gather(1, written)
    return logits.scatter(1, written, torch.where(there > 0, there / penalty, there * penalty))
