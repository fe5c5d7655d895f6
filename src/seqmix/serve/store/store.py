"""What a project knows, in SQLite or PostgreSQL: sentences, who said what about them and when, rankings, generated sentences.

    store = open_store("postgresql://user@host/database")
    event = store.save("notes:7", annotator.id, "label", [Mark(0, 2, "PER")], version=0)

An answer is on the disk when `save` returns. Events are only ever added; the current state follows from them, and an undo is one of
them. All writers of a store take turns, so a decision made on what was read still holds when it is written. Big results are read
page by page: no cursor stays open while somebody else wants to write. Threads may share a store; each process opens its own.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from sqlalchemy import URL, Connection, Engine, func, insert, select, text, update

from seqmix.data.sentence import Sentence
from seqmix.serve.store import annotators as people
from seqmix.serve.store import answers, rankings, schema
from seqmix.serve.store import current as standing
from seqmix.serve.store import sentences as texts
from seqmix.serve.store.records import (
    Annotator,
    Answer,
    Counts,
    Event,
    Generated,
    Generation,
    Mark,
    Rank,
    Work,
    is_key,
    loads,
)
from seqmix.serve.store.schema import events, meta, queue, sentences, sqlite_url
from seqmix.serve.store.sentences import Added
from seqmix.serve.store.transactions import Database

__all__ = ["Store", "create_store", "open_store", "sqlite_url", "store_version"]

_STREAMS = ("active", "audit", "seed")
_AUDIT_LOTS = "audit_lots"  # noted: the lots that belong to the audit stream
_STRETCH = 100  # ranks written in one turn, a few milliseconds: somebody may be waiting to save


def open_store(url: str | URL) -> Store:
    """An existing store; an older one is brought up to date, a newer one refused."""
    store = Store(schema.connect(url))
    try:
        with store.writing() as conn:
            schema.migrate(conn)
            store.tags = tuple(store.noted("tags"))
    except BaseException:
        store.close()
        raise
    return store


def store_version(url: str | URL) -> int | None:
    """The version of a store's tables, which are left as they are; None where there are none."""
    with Store(schema.connect(url)) as store, store.reading() as conn:
        return schema.version(conn)


def create_store(
    url: str | URL, tags: Sequence[str], fill: Callable[[Store], None] = lambda store: None
) -> Store:
    """A new store, made and filled in one transaction; a database that holds a project already is refused."""
    store = Store(schema.connect(url, new=True))
    try:
        with store.writing() as conn:
            schema.create(conn)
            store.set_tags(tags)
            fill(store)
    except BaseException:
        store.close()
        raise
    return store


class Store(Database):
    """One store, open."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.tags: tuple[str, ...] = ()

    # what is noted beside the tables

    def note(self, key: str, value: Any) -> None:
        """Keep one JSON value by name, such as what the trainer is doing; not worth a wait for the disk."""
        with self.writing(durable=False) as conn:
            if (
                conn.execute(
                    update(meta).where(meta.c.key == key).values(value=json.dumps(value))
                ).rowcount
                == 0
            ):
                conn.execute(insert(meta).values(key=key, value=json.dumps(value)))

    def noted(self, key: str) -> Any:
        """The value, or None."""
        with self.reading() as conn:
            return loads(conn.execute(select(meta.c.value).where(meta.c.key == key)).scalar())

    def set_tags(self, tags: Sequence[str]) -> None:
        """The types of span there are."""
        self.note("tags", list(tags))
        self.tags = tuple(tags)

    def current_tags(self) -> tuple[str, ...]:
        """The types of span there are by now: another process may have added one."""
        self.tags = tuple(self.noted("tags"))
        return self.tags

    def open_tags(self, tags: Iterable[str]) -> None:
        """Answers up to now say nothing of these tags: what they leave unmarked is not known."""
        with self.writing():
            now = self.counts().events
            self.note(texts.OPEN, {**(self.noted(texts.OPEN) or {}), **dict.fromkeys(tags, now)})

    # annotators

    def add_annotator(self, name: str, admin: bool = False) -> str:
        """A new annotator; the token is returned this once and kept as a hash only."""
        with self.writing() as conn:
            return people.add(conn, name, admin)

    def fresh_token(self, annotator_id: int) -> str:
        """A new token in place of the old one, which opens nothing any more."""
        with self.writing() as conn:
            return people.renew(conn, annotator_id)

    def revoke(self, annotator_id: int) -> None:
        """Take an annotator's token away; what they answered stays."""
        with self.writing() as conn:
            people.revoke(conn, annotator_id)

    def annotator_by_token(self, token: str) -> Annotator | None:
        """Whose token it is."""
        with self.reading() as conn:
            return people.by_token(conn, token)

    def annotator(self, name: str) -> Annotator | None:
        """An annotator by name."""
        with self.reading() as conn:
            return people.named(conn, name)

    def annotators(self) -> list[Annotator]:
        """Everybody, in the order they came."""
        with self.reading() as conn:
            return people.everybody(conn)

    # sentences

    def add_sentences(
        self, given: Iterable[Sentence], seed: bool = False, random_seed: int = 0
    ) -> Added:
        """Add sentences; with `seed`, the labels they carry are kept as given before the project began."""
        with self.writing() as conn:
            added = texts.add(conn, given, self.tags, seed, random_seed, self._audit_lots(conn))
            self._count_pool(conn)
            return added

    def reserve_audit(self, share: float) -> int:
        """Set apart the random sentences of the audit stream; how many. Once, when all sentences are added.

        Of sentences that are added later, as many join it by chance.
        """
        with self.writing() as conn:
            size = texts.reserve_audit(conn, share)
            self.note(_AUDIT_LOTS, texts.audit_lots(conn, share))
            conn.execute(text("ANALYZE"))
            return size

    def retire(self, ids: Collection[str], back: bool = False) -> None:
        """Take sentences out of the project, which keeps their history; or take them `back`."""
        with self.writing() as conn:
            if back:
                texts.restore(conn, ids, self._audit_lots(conn))
            else:
                texts.retire(conn, ids)
            self._count_pool(conn)

    def _audit_lots(self, conn: Connection) -> int:
        noted = self.noted(_AUDIT_LOTS)
        return texts.audit_lots(conn) if noted is None else int(noted)

    def _count_pool(self, conn: Connection) -> None:
        pool = select(func.count()).where(queue.c.stream.in_(("active", "audit")))
        self.note("pool", conn.execute(pool).scalar_one())

    def count(self) -> int:
        """How many sentences there are, the seed included."""
        with self.reading() as conn:
            return int(conn.execute(select(func.count()).select_from(sentences)).scalar_one())

    def sentence(self, id: str) -> Sentence | None:
        """One sentence, without labels."""
        with self.reading() as conn:
            return texts.one(conn, id)

    def sentences(self, ids: Iterable[str] | None = None) -> Iterator[Sentence]:
        """All sentences in order, or some in the order of their ids, without labels."""
        if ids is None:
            yield from (s.unlabeled() for s in self._paged(_STREAMS, unlabeled=True))
            return
        for page in texts.paged(ids, texts.PAGE):
            with self.reading() as conn:
                found = texts.some(conn, page)
            yield from found

    def labeled(self, *streams: str, unlabeled: bool = False) -> Iterator[Sentence]:
        """The sentences of some streams (active, audit, seed; all by default) with the labels that count; the others bare if asked for.

        The adjudicated answer counts, else that of the annotator who answered first, else the seed's. Where a person was sure of a
        part only, the rows of the rest are missing.
        """
        yield from self._paged(streams or _STREAMS, unlabeled)

    def _paged(
        self, streams: Collection[str], unlabeled: bool, labeled: bool = True
    ) -> Iterator[Sentence]:
        position = -1
        while True:
            with self.reading() as conn:
                page = texts.page_after(conn, position, streams, unlabeled, labeled)
            yield from (sentence for _, sentence in page)
            if len(page) < texts.PAGE:
                return
            position = page[-1][0]

    def unlabeled(self) -> Iterator[Sentence]:
        """The active sentences nobody has answered, in the order of the text: the pool."""
        yield from self._paged(("active",), unlabeled=True, labeled=False)

    def unlabeled_ids(
        self, limit: int | None = None, rng: np.random.Generator | None = None
    ) -> list[str]:
        """Ids of the pool, at most `limit`: a stretch of the random order that begins anywhere, so it is a random sample."""
        pool = (
            select(queue.c.sentence_id)
            .where(queue.c.stream == "active", queue.c.state.in_(("free", "held")))
            .order_by(queue.c.lot)
        )
        start = (
            int((rng or np.random.default_rng()).integers(texts._LOTS)) if limit is not None else 0
        )
        with self.reading() as conn:
            found = list(conn.execute(pool.where(queue.c.lot >= start).limit(limit)).scalars())
            if limit is not None and len(found) < limit:
                found += conn.execute(
                    pool.where(queue.c.lot < start).limit(limit - len(found))
                ).scalars()
        return found

    def audit_sentences(self) -> list[Sentence]:
        """The audit reserve, answered or not, in the order it is asked: what a trainer predicts for `Generation.audit`."""
        with self.reading() as conn:
            wanted = (
                select(sentences)
                .join_from(sentences, queue)
                .where(queue.c.stream == "audit")
                .order_by(queue.c.lot)
            )
            return [texts.bare(row) for row in conn.execute(wanted)]

    # answers

    def save(
        self,
        sentence_id: str,
        annotator_id: int,
        kind: str,
        marks: Iterable[Mark] = (),
        sure: Iterable[tuple[int, int]] | None = None,
        seconds: float = 0.0,
        version: int = 0,
        stream: str | None = None,
        now: float | None = None,
    ) -> Event:
        """Append an answer: label, skip or adjudicate. `version` is that of `Store.version`, else StaleError and nothing is saved."""
        with self.writing() as conn:
            at = time.time() if now is None else now
            return answers.save(
                conn,
                self.current_tags(),
                sentence_id,
                annotator_id,
                kind,
                marks,
                sure,
                seconds,
                version,
                at,
                stream,
            )

    def undo(
        self, annotator_id: int, seq: int | None = None, now: float | None = None
    ) -> Event | None:
        """Cancel this answer or skip of the annotator, the last one that counts unless told; the sentence is theirs again."""
        with self.writing() as conn:
            return answers.undo(conn, annotator_id, time.time() if now is None else now, seq)

    def last_answer(self, annotator_id: int) -> int | None:
        """The seq of the annotator's last answer or skip that still counts: what an undo takes back."""
        with self.reading() as conn:
            return answers.last_answer(conn, annotator_id)

    def version(self, sentence_id: str, annotator_id: int | None = None) -> int:
        """The seq of this annotator's last event on this sentence, 0 if there is none. Without annotator: anybody's, to adjudicate."""
        if not is_key(sentence_id):
            return 0
        wanted = select(func.coalesce(func.max(events.c.seq), 0)).where(
            events.c.sentence_id == sentence_id
        )
        if annotator_id is not None:
            wanted = wanted.where(
                events.c.annotator_id == annotator_id, events.c.kind != "adjudicate"
            )
        with self.reading() as conn:
            return int(conn.execute(wanted).scalar_one())

    def events(self, after: int = 0) -> Iterator[Event]:
        """The whole history in order, or what came after an event."""
        while True:
            with self.reading() as conn:
                wanted = (
                    select(events)
                    .where(events.c.seq > after)
                    .order_by(events.c.seq)
                    .limit(texts.PAGE)
                )
                page = [answers.as_event(row) for row in conn.execute(wanted)]
            yield from page
            if len(page) < texts.PAGE:
                return
            after = page[-1].seq

    def answers(self, sentence_id: str | None = None, overridden: bool = False) -> list[Answer]:
        """What is said now, of one sentence or all. An adjudication overrides, unless what it overrides is asked for too."""
        with self.reading() as conn:
            return standing.answers(conn, sentence_id, overridden)

    def gold_answers(self, *streams: str) -> list[Answer]:
        """For every answered sentence of some streams, the one answer that counts."""
        with self.reading() as conn:
            return standing.gold(conn, streams or _STREAMS)

    def unread(self, annotator_id: int, ids: Collection[str]) -> set[str]:
        """Of these sentences those that only others have answered."""
        with self.reading() as conn:
            return standing.unread(conn, annotator_id, ids)

    def history(self, annotator_id: int, n: int = 20) -> list[Answer]:
        """An annotator's last answers that still count, the newest first: where going back leads."""
        with self.reading() as conn:
            return standing.history(conn, annotator_id, n)

    def counts(self, annotator_id: int | None = None) -> Counts:
        """How far the project is."""
        with self.reading() as conn:
            return standing.counts(conn, annotator_id)

    def work(self) -> list[Work]:
        """Who did how much."""
        with self.reading() as conn:
            return standing.work(conn)

    def rebuild(self) -> None:
        """Derive the current state anew from the events."""
        with self.writing() as conn:
            answers.rebuild(conn)

    # rankings

    def publish(
        self,
        generation: Generation,
        ranks: Iterable[Rank] = (),
        generated: Iterable[Mapping[str, Any]] = (),
        pause: Callable[[], None] = lambda: time.sleep(0.01),
    ) -> None:
        """A new ranking, best first, and what came with it.

        subtle: ranks are written best first and in short turns, between which others save and ask. At every moment the order is the
        beginning of the new ranking followed by the old one, which is an order too; the generation itself appears last and at once.
        """
        first = 0
        for stretch in texts.paged(ranks, _STRETCH):
            with self.reading() as conn:
                rows = rankings.ranked(conn, generation.number, first, stretch, self.tags)
            with self.writing(durable=False) as conn:
                rankings.put_ranks(conn, rows)
            first += len(stretch)
            pause()
        with self.writing() as conn:
            rankings.put_generation(conn, generation, generated)

    def suggestion(self, sentence_id: str) -> tuple[Mapping[str, Any] | None, int | None]:
        """What the last model would answer ({"spans": …, "confidence": …} or None), and its generation. Never for an audit sentence."""
        with self.reading() as conn:
            return rankings.suggestion(conn, sentence_id)

    def generations(self, n: int | None = None) -> list[Generation]:
        """The last n trainings (or all), oldest first."""
        with self.reading() as conn:
            return rankings.newest(conn, n)

    def generated(self, n: int = 50, offset: int = 0) -> tuple[list[Generated], int]:
        """Some of the generated sentences, and how many there are."""
        with self.reading() as conn:
            return rankings.page(conn, n, offset)

    def veto(self, generated_id: str, annotator_id: int, on: bool = True) -> None:
        """Refuse a generated sentence for good, or take that back."""
        with self.writing() as conn:
            rankings.veto(conn, generated_id, annotator_id, on, time.time())

    def vetoed(self) -> set[str]:
        """`records.digest(tokens)` of every sentence refused: these are not trained on again."""
        with self.reading() as conn:
            return rankings.vetoed(conn)
