"""How the starter is made, on a hundred articles of made-up text.

Types come without labels, losses fall, and the files load.
"""

from __future__ import annotations

import io
import json
import lzma
from contextlib import redirect_stdout
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import entity_types
import pretrain_starter
from entity_types import IGNORED, OUTSIDE, Names, label_words, unambiguous
from head_noun import head_noun
from seqmix.starter import load_encoder, load_language_model, loader
from starter_objectives import masking

SMALL = ["--layers", "1", "--width", "32", "--heads", "2"]
FEW = {
    "encoder": ["--steps", "20", "--batch", "4"],
    "types": ["--steps", "20", "--batch", "4"],
    "lm": ["--steps", "10", "--batch", "1"],
}
RATE = ["--lr", "1e-2"]
FILES = ("a.txt", "b.txt.xz")
KINDS = ("footballer", "village", "company", "river")


@dataclass(frozen=True)
class World:
    """A hundred articles, as blocks of text, and the kind of each title."""

    kinds: dict[str, str]
    blocks: list[str]


def made_up_world() -> World:
    """Ninety-eight titles unlike each other, and a village and a river that share a name."""
    rng = np.random.default_rng(0)
    syllables = [
        "bra",
        "vel",
        "tor",
        "lin",
        "quo",
        "mar",
        "ske",
        "dun",
        "pol",
        "gri",
        "zan",
        "fey",
        "hul",
        "wex",
        "cor",
    ]
    names = list(dict.fromkeys("".join(rng.choice(syllables, 3)).capitalize() for _ in range(400)))
    words = iter(names)
    kinds: dict[str, str] = {}
    for n in range(98):
        kind = KINDS[n % 4]
        kinds[next(words) if kind == "village" else f"{next(words)} {next(words)}"] = kind
    kinds |= {"Ombrel (village)": "village", "Ombrel (river)": "river"}
    titles = list(kinds)
    return World(
        kinds,
        [
            article(title, kinds[title], [titles[i] for i in rng.choice(98, 3)], n)
            for n, title in enumerate(titles)
        ],
    )


def article(title: str, kind: str, others: list[str], n: int) -> str:
    name = title.removesuffix(f" ({kind})")
    last, place = name.split()[-1], "Ombrel" if n % 3 == 0 else others[2]
    return "\n".join(
        [
            title,
            f"{name} (said to be old) was a small Norvish {kind} in the north of the country.",
            "Short line",
            f"They say that in the spring {last} was near {others[0]}, "
            f"and that {last} was seen with Quorvash of Tindale again.",
            f"In that year {others[1]} was on the way to {place}, "
            f"but no one who was there saw {last} or {others[0]} in the end.",
        ]
    )


@dataclass(frozen=True)
class Outcome:
    """What the scripts wrote and printed."""

    world: World
    folder: Path
    printed: dict[str, dict]


@pytest.fixture(scope="module")
def outcome(tmp_path_factory) -> Outcome:
    folder, world = tmp_path_factory.mktemp("outcome"), made_up_world()
    (folder / FILES[0]).write_text("\n\n".join(world.blocks[:60]) + "\n", encoding="utf-8")
    with lzma.open(folder / FILES[1], "wt", encoding="utf-8") as file:
        file.write("\n\n\n" + "\n\n".join(world.blocks[60:]))
    typed, ids = str(folder / "typed"), str(folder / "typed" / "ids.u16")
    printed = {
        "typing": run(
            entity_types.main,
            *(str(folder / name) for name in FILES),
            "--out",
            typed,
            "--least",
            "20",
        )
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.cuda, "is_available", lambda: False)
        for kind in ("encoder", "lm"):
            out = str(folder / kind)
            printed[kind] = run(
                pretrain_starter.main,
                kind,
                "--tokens",
                ids,
                "--held-out",
                ids,
                "--out",
                out,
                *SMALL,
                *FEW[kind],
                *RATE,
            )
        start, out = str(folder / "encoder"), str(folder / "types")
        printed["types"] = run(
            pretrain_starter.main,
            "types",
            "--typed",
            typed,
            "--start",
            start,
            "--out",
            out,
            *FEW["types"],
            *RATE,
        )
    return Outcome(world, folder, printed)


def run(main, *arguments: str) -> dict:
    printed = io.StringIO()
    with redirect_stdout(printed):
        main(arguments)
    return json.loads(printed.getvalue().splitlines()[-1])


@pytest.fixture(scope="module")
def paragraphs(outcome) -> list[list[tuple[str, int]]]:
    """Words and the labels of their first pieces, a list a paragraph, three an article."""
    ids, labels = (
        np.fromfile(outcome.folder / "typed" / f"{part}.u16", dtype=np.uint16)
        for part in ("ids", "labels")
    )
    assert len(ids) == len(labels) == outcome.printed["typing"]["pieces"]
    pieces = loader.starter_tokenizer().convert_ids_to_tokens(ids.tolist())
    result: list[list[tuple[str, int]]] = [[]]
    for piece, label in zip(pieces, labels.tolist(), strict=True):
        if piece == "[SEP]":
            assert label == IGNORED
            result.append([])
        elif piece.startswith("##"):
            word, first = result[-1].pop()
            assert label == (first if first in (OUTSIDE, IGNORED) else first | 1)
            result[-1].append((word + piece[2:], first))
        else:
            result[-1].append((piece, label))
    return result[:-1]


def mentions(words: list[tuple[str, int]], types: list[str]) -> list[tuple[str, str]]:
    spans: list[tuple[str, str]] = []
    for word, label in words:
        if label in (OUTSIDE, IGNORED):
            continue
        kind = types[label // 2 - 1]
        spans = (
            [*spans, (word, kind)]
            if label % 2 == 0
            else [*spans[:-1], (f"{spans[-1][0]} {word}", kind)]
        )
    return spans


def types_of(outcome: Outcome) -> list[str]:
    return json.loads((outcome.folder / "typed" / "types.json").read_text())


def test_types_are_the_head_nouns_of_the_definitions(outcome):
    assert sorted(types_of(outcome)) == sorted(KINDS)
    assert (outcome.printed["typing"]["articles"], outcome.printed["typing"]["types"]) == (100, 4)


def test_a_title_is_a_mention_of_its_type_at_home_and_elsewhere(outcome, paragraphs):
    """Every word of every text is checked against what the test knows of its world."""
    kinds = outcome.world.kinds
    assert len(paragraphs) == 3 * len(kinds)
    for n, (title, kind) in enumerate(kinds.items()):
        name = title.removesuffix(f" ({kind})")
        home = {name: kind, name.split()[-1]: kind}
        seen = [
            span
            for words in paragraphs[3 * n : 3 * n + 3]
            for span in mentions(words, types_of(outcome))
        ]
        assert all(dict(kinds, **home)[span] == given for span, given in seen), title
        assert seen[0] == (name, kind)
        assert seen.count((name.split()[-1], kind)) >= 3
        assert any(other in kinds and other not in home for other, _ in seen), title


def test_a_title_that_two_articles_share_is_ignored_but_at_home(outcome, paragraphs):
    labels = {
        n: [label for word, label in words if word == "Ombrel"]
        for n, words in enumerate(paragraphs)
    }
    at_home = [label for n in range(3 * 98, 3 * 100) for label in labels[n]]
    elsewhere = [label for n in range(3 * 98) for label in labels[n]]

    assert len(elsewhere) > 20 and set(elsewhere) == {IGNORED}
    assert len(at_home) >= 6 and {
        types_of(outcome)[label // 2 - 1] for label in at_home if label != IGNORED
    } == {"village", "river"}


def test_small_words_are_outside_and_unknown_large_ones_ignored(outcome, paragraphs):
    for word, label in (pair for words in paragraphs for pair in words):
        if word in (
            "Quorvash",
            "Tindale",
            "Norvish",
            "They",
        ):  # "they" never stands within a sentence here
            assert label == IGNORED
        elif word == "In":
            assert label == OUTSIDE
        elif word.islower() and word != "of":
            assert label == OUTSIDE, word


def test_the_of_of_an_unknown_name_is_ignored(paragraphs):
    for words in paragraphs:
        for (before, _), (word, label) in pairwise(words):
            if word == "of":
                assert label == (IGNORED if before == "Quorvash" else OUTSIDE)


def test_the_longest_known_name_wins():
    known = Names.of({("Bra",): 1, ("Bra", "Vel"): 2, ("Bra", "Vel", "Tor", "Lin"): 3})

    assert label_words(["Bra", "Vel", "Tor", "saw", "Bra"], [known], frozenset()) == [
        4,
        5,
        IGNORED,
        OUTSIDE,
        2,
    ]


def test_a_name_in_front_of_a_comma_counts_as_a_name_of_its_own():
    titles = {
        "Bra Vel, Torland": 1,
        "Bra Vel, Linland": 1,
        "Ske Dun, Torland": 1,
        "Ske, Torland": 1,
        "Gri Zan": 0,
    }

    assert unambiguous(titles, frozenset()) == {
        ("Bra", "Vel", ",", "Torland"): 1,
        ("Bra", "Vel", ",", "Linland"): 1,
        ("Ske", "Dun", ",", "Torland"): 1,
        ("Ske", "Dun"): 1,
        ("Ske", ",", "Torland"): 1,
    }


@pytest.mark.parametrize(
    ("opening", "noun"),
    [
        ("Bra Vel (born 3 May 1950 (or 1951)) was a Norvish footballer and coach.", "footballer"),
        ("Braskedun is a species of beetle in the family Torlinidae.", "species"),
        ("The Gri are one of the oldest companies of the country.", "company"),
        (
            "Zanfey is an elongated lake located in Torland.",
            None,
        ),  # a word in -ed ends the phrase before it began
        ("Hulwex is a village, once a town.", "village"),
        ("Corvel was the first Norvish.", None),  # a name
        ("Corvel is Torlin's.", None),
        ("Corvel lies in Torland.", None),
        ("Marpol are swamps near the coast.", "swamp"),
        ("Marpol is a grass in the meadows.", "grass"),
    ],
)
def test_the_head_noun_of_a_definition(opening, noun):
    assert head_noun(opening) == noun


@pytest.mark.slow  # two processes load torch
def test_two_workers_write_the_same_bytes(outcome, tmp_path):
    run(
        entity_types.main,
        *(str(outcome.folder / name) for name in FILES),
        "--out",
        str(tmp_path),
        "--least",
        "20",
        "--workers",
        "2",
    )

    for name in ("ids.u16", "labels.u16", "types.json"):
        assert (tmp_path / name).read_bytes() == (outcome.folder / "typed" / name).read_bytes()


def test_a_title_that_stands_twice_is_refused(tmp_path):
    (tmp_path / "a.txt").write_text("\n\n".join([made_up_world().blocks[0]] * 2))

    with pytest.raises(SystemExit, match="must have a unique title; got twice"):
        entity_types.main([str(tmp_path / "a.txt"), "--out", str(tmp_path / "typed")])


def test_all_losses_fall(outcome):
    for kind, names in {
        "encoder": {"masked"},
        "lm": {"next"},
        "types": {"masked", "types"},
    }.items():
        before, after = outcome.printed[kind]["before"], outcome.printed[kind]["after"]
        assert outcome.printed[kind]["steps"] == int(FEW[kind][1])
        assert names <= before.keys()
        assert all(after[name] < 0.9 * before[name] for name in names), outcome.printed[kind]
    assert (
        outcome.printed["types"]["after"]["mention pieces right"]
        > outcome.printed["types"]["before"]["mention pieces right"] + 0.1
    )


def test_types_go_on_from_where_the_encoder_stopped(outcome):
    assert outcome.printed["types"]["before"]["masked"] == pytest.approx(
        outcome.printed["encoder"]["after"]["masked"], rel=0.1
    )


@pytest.mark.parametrize("source", ["encoder", "types"])
def test_the_files_load_as_the_starters(outcome, source, tmp_path, monkeypatch):
    for kind, folder in (("encoder", source), ("lm", "lm")):
        for name, stored in (
            ("int8.safetensors", "model.int8.safetensors"),
            ("json", "config.json"),
        ):
            (tmp_path / f"{kind}.{name}").write_bytes(
                (outcome.folder / folder / stored).read_bytes()
            )
    (tmp_path / "tokenizer.json").write_bytes(
        (outcome.folder / source / "tokenizer.json").read_bytes()
    )
    monkeypatch.setattr(loader, "STARTER_FILES", tmp_path)
    monkeypatch.setattr(loader, "starter_weights", loader.starter_weights.__wrapped__)

    encoder, tokenizer = load_encoder(masked_lm=True)
    lm, _ = load_language_model()

    stored = load_file(outcome.folder / source / "model.int8.safetensors")
    key = "bert.encoder.layer.0.output.dense.weight"
    assert torch.equal(
        encoder.state_dict()[key], stored[key].float() * stored[f"{key}.scale"].float()[:, None]
    )
    assert (encoder.config.hidden_size, lm.config.n_embd, len(tokenizer)) == (32, 32, 28996)
    assert (encoder.config.hidden_dropout_prob, encoder.config.attention_probs_dropout_prob) == (
        0.1,
        0.1,
    )  # as the shipped one's
    assert load_encoder()[0].config.hidden_size == 32


def test_a_written_weight_is_within_half_a_step_of_its_scale(tmp_path):
    model = pretrain_starter.objectives.new_encoder(1, 32, 2, 64)
    pretrain_starter.write_int8(model, tmp_path)
    read = loader.read_int8(tmp_path / "model.int8.safetensors")
    scales = load_file(tmp_path / "model.int8.safetensors")

    for key, value in read.items():
        step = scales[f"{key}.scale"].float()[:, None] if f"{key}.scale" in scales else 1e-3
        assert ((model.state_dict()[key] - value).abs() <= 0.51 * step + 1e-6).all(), (
            key
        )  # float16 rounds the scale too
    assert set(model.state_dict()) - set(read) == {
        "cls.predictions.decoder.weight",
        "cls.predictions.decoder.bias",
    }


def test_the_type_head_is_written_beside(outcome):
    head = load_file(outcome.folder / "types" / "types.safetensors")

    assert {key: tuple(value.shape) for key, value in head.items()} == {
        "types.weight": (10, 32),
        "types.bias": (10,),
    }
    assert (outcome.folder / "types" / "types.json").read_bytes() == (
        outcome.folder / "typed" / "types.json"
    ).read_bytes()
    assert not any(
        "types" in key for key in load_file(outcome.folder / "types" / "model.int8.safetensors")
    )


def test_words_and_what_is_joined_are_hidden_together():
    """All but one in a row, where the number of pieces to hide is reached."""
    torch.manual_seed(0)
    tokenizer = loader.starter_tokenizer()
    ids = torch.tensor(
        [tokenizer("Reykjavík and Ouagadougou " * 12, add_special_tokens=False).input_ids[:100]]
        * 20
    )
    word = torch.tensor(
        [
            [not piece.startswith("##") for piece in tokenizer.convert_ids_to_tokens(row.tolist())]
            for row in ids
        ]
    ).cumsum(1)
    joined = word % 2 == 0

    for group, extra in ((word, None), ((~(joined | (word == word.roll(1, 1)))).cumsum(1), joined)):
        shown, at, truth = masking(ids.device)(ids, extra)
        assert at.shape == (20, 20) and torch.equal(ids.gather(1, at), truth)
        assert ((shown != ids).sum(1) <= 20).all()
        for row in range(20):
            hidden = torch.zeros(100, dtype=torch.bool).index_fill(0, at[row], True)
            torn = [n for n in group[row].unique() if len(hidden[group[row] == n].unique()) > 1]
            assert len(torn) <= 1
