"""What README, docs and --help tell people to type: every command is one there is, with options it takes; every link leads somewhere."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from kente.api.words import automatic_words
from kente.cli.commands import COMMANDS, Family
from kente.config import Config
from kente.configfile import load_recipe, override
from kente.train.budget import automatic
from kente.train.kinds import KINDS
from kente.train.language_budget import automatic_language

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCED = re.compile(r"^```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)
MAKERS = ("train", "pretrain", "contrast", "embed", "classify train", "graph train")
"""Commands that want to be told --out."""
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")


def typed(page: Path) -> Iterator[str]:
    """Commands that stand at the beginning of a line of a code block; a line that ends in a backslash goes on."""
    for block in FENCED.findall(page.read_text(encoding="utf-8")):
        for line in block.replace("\\\n", " ").splitlines():
            if line.startswith("kente "):
                yield line


def words_of(line: str) -> list[str]:
    """The words after `kente`, without what the shell keeps for itself: comments, pipes, redirections."""
    words = shlex.split(line, comments=True)
    ends = [place for place, word in enumerate(words) if word in ("<", ">", "|", "&", "&&")]
    return words[1 : ends[0] if ends else None]


def written() -> Iterator[tuple[str, str]]:
    """(where, command)"""
    for page in PAGES:
        yield from ((page.name, line) for line in typed(page))
    for name, command in COMMANDS.items():
        several = command.commands.values() if isinstance(command, Family) else (command,)
        yield from ((f"kente {name} --help", example) for one in several for example in one.examples)
    for kind in KINDS.values():
        yield from ((f"next, for {kind.name}", line.replace("RUN", "runs/a")) for line in (kind.made_by, *kind.used_by))


@pytest.mark.parametrize(("where", "line"), dict.fromkeys(written()))
def test_what_is_written_can_be_typed(where: str, line: str) -> None:
    assert line.startswith("kente "), where
    name, *rest = words_of(line)
    command = COMMANDS[name]
    if isinstance(command, Family):
        verb, *rest = rest
        name, command = f"{name} {verb}", command.commands[verb]
    told = vars(command.parser(name).read(rest))
    if where.startswith("next, ") and name in MAKERS:  # these stand alone: nothing is left out of them
        assert told["out"], f"{line} says not where to"
    base = begun_from(name, told.get("kind"))
    if recipe := told.get("recipe"):
        base = load_recipe(recipe, base)
    if base is not None:
        override(base, (setting for setting in told["settings"] or () if setting != "help"))


def begun_from(name: str, kind: str | None) -> Config | None:
    """The settings that recipes and settings are laid over, for the commands of which one knows it without a run."""
    if name == "pretrain":
        return automatic_words() if kind == "words" else automatic_language(kind or "causal")
    return automatic() if name == "train" else None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    links = [link for link in LINK.findall(text) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_what_belongs_to_the_shell_is_left_to_it() -> None:
    assert words_of('kente translate runs/a "Good morning." > out.txt   # to a file') == [
        "translate",
        "runs/a",
        "Good morning.",
    ]
