from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics import classification_report, f1_score, precision_score, recall_score

from seqmix.data import formats
from seqmix.data.scheme import convert, tag
from seqmix.data.scoring import Count, Score, score
from seqmix.data.spans import Span, spans
from seqmix.errors import DataError

CONLL03 = Path(__file__).parents[3] / "shared" / "data" / "conll03"
PREFIXES = {"BIO": "BI", "IOB1": "BI", "BIOES": "BIES", "BILOU": "BILU", "IO": "I"}
TYPES = ("PER", "ORG", "LOC", "A-B")
EXACTLY = {"rel": 1e-12, "abs": 1e-12}


def for_seqeval(sequences):
    """seqeval knows no BILOU outside its strict mode: L- and U- are E- and S- by another name."""
    return [
        ["ES"["LU".index(tag[0])] + tag[1:] if tag[0] in "LU" else tag for tag in tags]
        for tags in sequences
    ]


def random_sequences(rng, scheme, n):
    """Gold and predicted tags.

    Half of the gold is legal, half is any tags at all; a quarter of all tokens differs.
    """
    names = np.array(["O", *(f"{prefix}-{type}" for prefix in PREFIXES[scheme] for type in TYPES)])
    weights = np.r_[len(names) - 1, np.ones(len(names) - 1)] / (2 * len(names) - 2)
    gold, found = [], []
    for number, length in enumerate(rng.integers(1, 9, size=n)):
        tags = names[rng.choice(len(names), size=length, p=weights)].tolist()
        gold.append(convert(tags, scheme) if number % 2 else tags)
        noise = names[rng.choice(len(names), size=length, p=weights)].tolist()
        found.append(
            [
                b if changed else a
                for a, b, changed in zip(gold[-1], noise, rng.random(length) < 0.25, strict=True)
            ]
        )
    return gold, found


@pytest.mark.parametrize("scheme", PREFIXES)
def test_ten_thousand_sequences_score_as_seqeval_scores_them(scheme):
    gold, found = random_sequences(np.random.default_rng(7), scheme, 10_000)

    for at in range(0, 10_000, 100):
        ours = score(gold[at : at + 100], found[at : at + 100])
        report = classification_report(
            for_seqeval(gold[at : at + 100]),
            for_seqeval(found[at : at + 100]),
            output_dict=True,
            zero_division=0,
        )
        per_type = {type: own for type, own in report.items() if not type.endswith(" avg")}
        assert {
            type: {
                "precision": own.precision,
                "recall": own.recall,
                "f1-score": own.f1,
                "support": own.gold,
            }
            for type, own in ours.by_type.items()
        } == {type: pytest.approx(own, **EXACTLY) for type, own in per_type.items()}
        micro, macro = report["micro avg"], report["macro avg"]
        assert (ours.precision, ours.recall, ours.f1) == pytest.approx(
            (micro["precision"], micro["recall"], micro["f1-score"]), **EXACTLY
        )
        assert ours.macro_f1 == pytest.approx(macro["f1-score"], **EXACTLY)
        assert ours.gold == micro["support"]
        assert 0.2 < ours.f1 < 0.9  # the sequences are neither all right nor all wrong


@st.composite
def tagged_pairs(draw):
    length = draw(st.integers(1, 5))
    names = st.sampled_from(
        ["O", *(f"{prefix}-{type}" for prefix in "BIES" for type in ("X", "Y"))]
    )
    own = st.lists(names, min_size=length, max_size=length)
    return draw(own), draw(own)


@given(st.lists(tagged_pairs(), min_size=1, max_size=3))
def test_any_tags_score_as_seqeval_scores_them(pairs):
    gold, found = [g for g, _ in pairs], [f for _, f in pairs]
    ours = score(gold, found)

    assert ours.precision == pytest.approx(precision_score(gold, found, zero_division=0), **EXACTLY)
    assert ours.recall == pytest.approx(recall_score(gold, found, zero_division=0), **EXACTLY)
    assert ours.f1 == pytest.approx(f1_score(gold, found, zero_division=0), **EXACTLY)


@given(st.lists(tagged_pairs(), max_size=3))
def test_the_types_add_up_to_the_whole(pairs):
    ours = score([g for g, _ in pairs], [f for _, f in pairs])
    total = sum(ours.by_type.values(), Count())

    assert (total.gold, total.found, total.correct) == (ours.gold, ours.found, ours.correct)
    assert list(ours.by_type) == sorted(ours.by_type)


@given(st.lists(tagged_pairs(), max_size=3))
def test_gold_scored_against_itself_is_perfect(pairs):
    gold = [g for g, _ in pairs]
    ours = score(gold, gold)

    assert ours.gold == ours.found == ours.correct == sum(len(spans(tags)) for tags in gold)
    assert ours.f1 == (1.0 if ours.gold else 0.0)
    assert ours.accuracy == (1.0 if gold else 0.0)


def test_a_span_counts_only_with_exact_borders_and_type():
    gold = [["B-PER", "I-PER", "O", "B-LOC"]]

    assert score(gold, [["B-PER", "I-PER", "O", "B-LOC"]]).correct == 2
    assert score(gold, [["B-PER", "O", "O", "B-ORG"]]).correct == 0
    assert score(gold, [["I-PER", "I-PER", "O", "I-LOC"]]).correct == 2  # a stray I- starts a span


def test_a_span_never_reaches_over_the_end_of_its_sentence():
    assert score([["B-PER"], ["I-PER"]], [["B-PER"], ["I-PER"]]).gold == 2


def test_nothing_found_and_nothing_to_find_score_zero():
    assert (score([["B-X"]], [["O"]]).precision, score([["O"]], [["B-X"]]).recall) == (0.0, 0.0)
    assert (score([["O"]], [["O"]]).f1, score([["O"]], [["O"]]).macro_f1) == (0.0, 0.0)
    assert (score([], []).f1, score([], []).accuracy) == (0.0, 0.0)


def test_nothing_scored_is_a_score_of_zeros():
    assert score([], []) == Score() == Score(0, 0, 0, {}, 0, 0, 0, "") and Count() == Count(0, 0, 0)


def test_macro_f1_is_the_mean_over_types_in_gold_or_prediction():
    ours = score([["B-X", "B-Y", "O"]], [["B-X", "O", "B-Z"]])

    assert {type: own.f1 for type, own in ours.by_type.items()} == {"X": 1.0, "Y": 0.0, "Z": 0.0}
    assert ours.macro_f1 == pytest.approx(1 / 3)


def test_tags_without_prefix_and_without_outside_are_scored_token_by_token():
    ours = score([["NOUN", "NOUN", "VERB"]], [["NOUN", "VERB", "VERB"]])

    assert (ours.gold, ours.found, ours.correct) == (3, 3, 2)
    assert ours.f1 == ours.accuracy == pytest.approx(2 / 3)


def test_a_hyphen_in_a_part_of_speech_is_no_prefix():
    assert score([["N-1", "N-1", "V-2"]], [["N-1", "N-1", "V-2"]]).gold == 3


def test_tags_without_prefix_beside_outside_are_scored_as_runs():
    assert score([["PER", "PER", "O"]], [["PER", "PER", "O"]]).gold == 1


def test_different_tokens_or_sentences_are_refused_with_their_counts():
    with pytest.raises(DataError, match="sentence 2 has 1 gold tags and 2 predicted ones"):
        score([["O"], ["O"]], [["O"], ["O", "O"]])
    with pytest.raises(DataError, match="2 gold sentences and 1 predicted"):
        score([["O"], ["O"]], [["O"]])


def test_the_report_has_conllevals_layout():
    gold = [["B-PER", "I-PER", "O", "B-LOC", "O", "B-LOC"], ["B-ORG", "O", "O"]]
    found = [["B-PER", "I-PER", "O", "B-LOC", "O", "B-PER"], ["O", "O", "O"]]

    assert score(gold, found).report().split("\n") == [
        "processed 9 tokens with 4 phrases; found: 3 phrases; correct: 2.",
        "accuracy:  77.78%; precision:  66.67%; recall:  50.00%; FB1:  57.14",
        "              LOC: precision: 100.00%; recall:  50.00%; FB1:  66.67  1",
        "              ORG: precision:   0.00%; recall:   0.00%; FB1:   0.00  0",
        "              PER: precision:  50.00%; recall: 100.00%; FB1:  66.67  2",
    ]


def test_the_report_of_conllevals_own_example_is_the_published_one():
    # CoNLL-2000's page on conlleval's output; 84.08 % of 961 tokens are 808
    assert Score(459, 539, 371, tokens=961, tokens_correct=808).report().split("\n") == [
        "processed 961 tokens with 459 phrases; found: 539 phrases; correct: 371.",
        "accuracy:  84.08%; precision:  68.83%; recall:  80.83%; FB1:  74.35",
    ]


def test_a_score_as_plain_numbers_names_its_split():
    plain = score([["B-X", "O"]], [["B-X", "B-Y"]], split="dev").as_dict()

    assert plain == {
        "split": "dev",
        "f1": pytest.approx(2 / 3),
        "precision": 0.5,
        "recall": 1.0,
        "macro_f1": 0.5,
        "accuracy": 0.5,
        "sentences": 1,
        "tokens": 2,
        "gold": 1,
        "found": 2,
        "correct": 1,
        "by_type": {
            "X": {"f1": 1.0, "precision": 1.0, "recall": 1.0, "gold": 1, "found": 1},
            "Y": {"f1": 0.0, "precision": 0.0, "recall": 0.0, "gold": 0, "found": 1},
        },
    }
    assert "split" not in score([], []).as_dict()


@pytest.fixture(scope="module")
def conll03():
    if not CONLL03.exists():
        pytest.skip(f"the Reuters corpus may not be shared and is not at {CONLL03}")
    return {
        split: list(formats.read(CONLL03 / f"{split}.txt", "conll"))
        for split in ("train", "valid", "test")
    }


def test_conll03_has_as_many_spans_as_published(conll03):
    counts = {
        split: sum(len(spans(sentence.tags)) for sentence in sentences)
        for split, sentences in conll03.items()
    }

    assert counts == {"train": 23_499, "valid": 5_942, "test": 5_648}


def test_the_baseline_of_conll03_scores_as_published(conll03):
    """Tjong Kim Sang & De Meulder (2003), Table 5.

    They describe a baseline that knows only "entities which had a unique class in the training
    data", the longest match first. Read to the letter that gives 68.81 and 56.73. All six published
    figures appear when an entity with several classes gets its most frequent one (on a tie the
    first by name), matched from left to right.
    """
    seen = defaultdict(Counter)
    for sentence in conll03["train"]:
        for span in spans(sentence.tags):
            seen[sentence.tokens[span.start : span.end]][span.type] += 1
    known = {
        phrase: min(types, key=lambda type: (-types[type], type)) for phrase, types in seen.items()
    }
    longest = max(map(len, known))

    def figures(split):
        sentences = conll03[split]
        ours = score(
            [s.tags for s in sentences],
            [tag(longest_matches(s.tokens, known, longest), len(s)) for s in sentences],
        )
        return [f"{100 * figure:.2f}" for figure in (ours.precision, ours.recall, ours.f1)]

    assert figures("valid") == ["78.33", "65.23", "71.18"]
    assert figures("test") == ["71.91", "50.90", "59.61"]


def longest_matches(tokens, known, longest):
    at = 0
    while at < len(tokens):
        width = next(
            (
                n
                for n in range(min(longest, len(tokens) - at), 0, -1)
                if tokens[at : at + n] in known
            ),
            0,
        )
        if width:
            yield Span(at, at + width, known[tokens[at : at + width]])
        at += width or 1
