"""Runs that ask for a part of each sentence: what is answered is learned and counted, no more."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from seqmix.augment.replacement import Replacement
from seqmix.data.sentence import Sentence
from seqmix.data.spans import spans
from seqmix.errors import ConfigError, RunError
from seqmix.loop.evaluation import count_spans
from seqmix.loop.pool import Pool, answered
from seqmix.loop.run import Plan, run
from seqmix.query.part import SentencePart
from tests.loop.test_run import FILES, Killed, broken_off
from tests.loop.test_run import plan as whole_plan
from tests.support.small_loops import corpus, fit, small_learner


def plan(size: int = 2, policy: str = "nte") -> Plan:
    part = SentencePart(size) if size else None
    learner = partial(
        small_learner, augmenter=Replacement("mention"), rate=0.5, policy=policy, part=part
    )
    return whole_plan(learner=learner)


def test_only_the_tokens_of_a_part_are_answered() -> None:
    sentence = Sentence("s", ("Lena", "Ny", "left", "Oslo"), ("B-PER", "I-PER", "O", "B-LOC"))

    (part,) = answered([sentence], [(1, 3)])

    assert part.tags == (None, "I-PER", "O", None)
    assert answered([sentence], None) == [sentence]


def test_tokens_spans_and_minutes_of_a_round_are_those_that_were_answered(tmp_path: Path) -> None:
    gold = {sentence.id: sentence for sentence in corpus(80, 1)}
    seed_set = list(gold.values())[:10]
    tokens, marked = sum(map(len, seed_set)), sum(map(count_spans, seed_set))

    done = run(plan(), tmp_path / "run")

    assert done[0].parts is None and (done[0].tokens, done[0].spans) == (tokens, marked)
    for record in done[1:]:
        assert record.parts is not None and len(record.parts) == len(record.chosen) == 5
        for id, (start, end) in zip(record.chosen, record.parts, strict=True):
            assert 0 <= start < end <= len(gold[id]) and end - start >= min(2, len(gold[id]))
            tokens += end - start
            marked += len(spans([str(tag) for tag in gold[id].tags[start:end]]))
        assert (record.tokens, record.spans) == (tokens, marked)
        assert record.minutes == pytest.approx((0.33 * tokens + 4.5 * marked) / 60)
    whole = run(plan(0), tmp_path / "whole")
    assert done[-1].labeled == whole[-1].labeled and done[-1].tokens < whole[-1].tokens
    assert '"parts"' not in (tmp_path / "whole" / "rounds.jsonl").read_text()


def test_a_sentence_leaves_the_pool_and_what_was_not_asked_stays_unlabeled() -> None:
    gold = corpus(30, 1)
    learner = small_learner(Pool.of(gold[10:], gold[:10]), policy="nte", part=SentencePart(2))

    scores, windows = learner.ask(4)
    learner.label(
        list(scores),
        answered([s for id in scores for s in gold if s.id == id], list(windows.values())),
    )

    assert list(scores) == list(windows) and not set(scores) & set(learner.pool.unlabeled)
    for id, (start, end) in windows.items():
        labeled = [at for at, tag in enumerate(learner.pool.labeled[id].tags) if tag is not None]
        assert labeled == list(range(start, end))
    assert learner.train().counts


@pytest.mark.parametrize("policy", ["nte", "random"])
@pytest.mark.parametrize("at", range(1, 26, 4))
def test_a_run_broken_off_at_any_phase_ends_with_the_same_bytes(
    tmp_path: Path, at: int, policy: str
) -> None:
    run(plan(policy=policy), tmp_path / "whole")
    count = 0

    def kill(event) -> None:
        nonlocal count
        count += 1
        if count == at:
            raise Killed

    with pytest.raises(Killed):
        run(plan(policy=policy), tmp_path / "broken", kill)
    run(plan(policy=policy), tmp_path / "broken")

    for file in FILES:
        assert (tmp_path / "broken" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()


@pytest.mark.parametrize("parts", [[], [[0, 1]] * 4, [[1, 1]] * 5, [["0", 1]] * 5, [[0]] * 5, 3])
def test_damaged_parts_are_named(tmp_path: Path, parts: object) -> None:
    broken_off(tmp_path, "train", learner=plan().learner)
    path = tmp_path / "rounds" / "002" / "chosen.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"parts": parts}))

    with pytest.raises(RunError, match=r"chosen.json is damaged: expected parts"):
        run(plan(), tmp_path)

    lines = (tmp_path / "rounds.jsonl").read_text().splitlines()
    lines[1] = json.dumps(json.loads(lines[1]) | {"parts": parts})
    (tmp_path / "rounds.jsonl").write_text("\n".join(lines) + "\n")
    with pytest.raises(RunError, match=r"line 2 has no round 1 with a good 'parts'"):
        run(plan(), tmp_path)


def test_a_budget_in_tokens_counts_the_parts() -> None:
    gold = corpus(60, 1)
    ask = partial(small_learner, Pool.of(gold[10:], gold[:10]), policy="nte")

    _, windows = ask(part=SentencePart(2, budget=9)).ask(40)

    assert 8 <= sum(end - start for start, end in windows.values()) <= 9


@pytest.mark.parametrize("policy", ["qbc", "tag_count", lambda view, n, rng: []])
def test_a_policy_without_scores_of_tokens_is_refused(policy) -> None:
    with pytest.raises(ConfigError, match=r"needs a policy that scores each token.*nte.*; got"):
        small_learner(Pool.of(corpus(3)), tagger=fit, policy=policy, part=SentencePart(2))
