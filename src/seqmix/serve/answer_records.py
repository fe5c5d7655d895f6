"""Answers as records: who gave them, when, in how many seconds, and who suggested what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import or_, select

from seqmix.data.formats.jsonl_tokens import to_record
from seqmix.data.sentence import Sentence
from seqmix.errors import NotFoundError
from seqmix.serve.sources.llm.annotator import STREAM, answered_by_models
from seqmix.serve.store.batches.bulk import ACCEPT, bulk_ids
from seqmix.serve.store.current import current_answers, gold_answers
from seqmix.serve.store.rankings import read_generations
from seqmix.serve.store.records import BULK, PAGE, Answer, loads, rows
from seqmix.serve.store.schema import batches, events, queue
from seqmix.serve.store.sentences import paged, read_sentences, without_unasked
from seqmix.serve.store.store import Store


def answers_of(store: Store, annotator: str | None = None) -> list[Answer]:
    """Return all current answers, overridden ones too, or those of one annotator."""
    answers = [
        a for a in current_answers(store, overridden=True) if a.kind in ("label", "adjudicate")
    ]
    if annotator is None:
        return sorted(answers, key=lambda answer: answer.seq)
    if annotator not in {answer.annotator for answer in answers}:
        raise NotFoundError("answer of the annotator", annotator)
    mine = [a for a in answers if a.annotator == annotator and a.kind == "label"]
    return sorted(mine, key=lambda answer: answer.seq)


def labeled_answers(store: Store, annotator: str | None = None) -> Iterator[Sentence]:
    """Yield the sentences of these answers, labeled as each of them says."""
    return _labeled_by(store, answers_of(store, annotator))


def answer_records(store: Store, annotator: str | None = None) -> Iterator[dict[str, Any]]:
    """Yield the answers as JSON lines of tokens that say where each comes from."""
    answers = answers_of(store, annotator)
    counted = {answer.seq for answer in gold_answers(store)}
    models = {generation.number: generation.model for generation in read_generations(store)}
    causes = _causes(store)
    for answer, sentence in zip(answers, _labeled_by(store, answers), strict=True):
        cause = causes.get(answer.seq, _NO_CAUSE)
        number = answer.generation or 0  # generation 0 ranks without a model
        by_one = answer.stream not in (BULK, STREAM)
        yield to_record(sentence) | {
            "annotator": answer.annotator,
            "kind": answer.kind,
            "stream": answer.stream,
            "at": _iso(answer.at),
            "seconds": round(answer.seconds, 1),
            "generation": answer.generation,
            "suggested_by": models.get(number) if by_one else cause.details.get("model"),
            "sources": None if cause.shown is None else _sources(cause.shown),
            "batch": cause.batch,
            "bulk": _bulk(cause.details) if cause.batch == ACCEPT else None,
            "counts": answer.seq in counted,
        }


def split_by_id(store: Store) -> dict[str, str]:
    """Return the labeled sentences that are not of the split `active`, each with its split.

    audit: random; bulk: accepted in one go; source: by a language model; seed: labeled before
    """
    special = select(queue.c.sentence_id, queue.c.stream).where(
        queue.c.stream.in_(("audit", "seed")), queue.c.state == "done"
    )
    with store.reading() as conn:
        splits = {row.sentence_id: row.stream for row in conn.execute(special)}
        splits |= dict.fromkeys(bulk_ids(store), BULK)
        return splits | dict.fromkeys(answered_by_models(store), STREAM)


class _Cause(NamedTuple):
    """What each source offered, and the kind and details of the batch of an answer."""

    shown: Mapping[str, list[Any]] | None
    batch: str | None
    details: Mapping[str, Any]


_NO_CAUSE = _Cause(None, None, {})


def _causes(store: Store) -> dict[int, _Cause]:
    """Return the causes of answers that were suggested or are part of a batch."""
    caused = (
        select(events.c.seq, events.c.shown, batches.c.kind, batches.c.details)
        .outerjoin(batches, batches.c.id == events.c.batch)
        .where(or_(events.c.shown.is_not(None), events.c.batch.is_not(None)))
    )
    with store.reading() as conn:
        return {
            row.seq: _Cause(loads(row.shown), row.kind, loads(row.details) or {})
            for row in conn.execute(caused)
        }


def _sources(shown: Mapping[str, list[Any]]) -> dict[str, dict[str, Any]]:
    """Return what each source offered, with its kind and its model where these are known."""
    names = ("offered", "kept", "kind", "model")
    return {source: dict(zip(names, said, strict=False)) for source, said in shown.items()}


def _bulk(details: Mapping[str, Any]) -> dict[str, Any]:
    """Return at which error rate an answer was accepted, and which model was sure of it."""
    known = {"alpha": "alpha", "threshold": "threshold", "trained_on": "answers"}
    predicted = details.get("at")
    return {name: details.get(key) for name, key in known.items()} | {
        "predicted_at": None if predicted is None else _iso(predicted)
    }


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def _labeled_by(store: Store, answers: Iterable[Answer]) -> Iterator[Sentence]:
    """Yield the sentence of each answer with the labels of that answer."""
    for page in paged(answers, PAGE):
        by_id = {s.id: s for s in read_sentences(store, {a.sentence_id for a in page})}
        for answer in page:
            sentence = by_id[answer.sentence_id]
            tags = rows(answer.spans, answer.sure, len(sentence))
            yield sentence.with_tags(without_unasked(tags, answer.unasked))
