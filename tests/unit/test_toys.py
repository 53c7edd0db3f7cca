from __future__ import annotations

import pytest

from kente.data.toys import toy, toy_split
from kente.errors import UsageError


@pytest.mark.parametrize(
    ("name", "answer"), [("copy", list), ("reverse", lambda s: list(reversed(s))), ("sort", sorted)]
)
def test_every_answer_is_right_and_every_source_new(name, answer):
    pairs = toy(name, 500, seed=3, min_length=2, max_length=6)
    assert len({source for source, _ in pairs}) == 500
    for source, target in pairs:
        assert target.split(" ") == answer(source.split(" "))
        assert 2 <= len(source.split(" ")) <= 6
    assert {len(source.split(" ")) for source, _ in pairs} == {2, 3, 4, 5, 6}


def test_the_seed_decides():
    assert toy("sort", 50, seed=1) == toy("sort", 50, seed=1) != toy("sort", 50, seed=2)


def test_train_and_test_share_no_source():
    train, test = toy_split("reverse", 300, 100, seed=1, symbols="0123456789")
    assert (len(train), len(test)) == (300, 100)
    assert not {source for source, _ in train} & {source for source, _ in test}
    assert set("".join(source for source, _ in test)) <= set("0123456789 ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("swap", 5, 1), "no toy task called 'swap'; there are copy, reverse, sort"),
        (("copy", 5, 1, 4, 3), "not 4 and 3"),
        (("copy", 9, 1, 1, 2, "ab"), "9 distinct strings are too many: lengths 1 to 2 over 2 symbols give 6"),
    ],
)
def test_impossible_toys_are_refused(arguments, message):
    with pytest.raises(UsageError, match=message):
        toy(*arguments)
