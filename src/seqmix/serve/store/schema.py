"""The tables, the same in SQLite and PostgreSQL.

    meta          schema version, tags, what the trainer is doing
    annotators    names; tokens as hashes only
    sentences     the text; never changes
    events        every answer, skip, undo and adjudication; triggers keep it append-only
    current       derived: each annotator's current answer
    queue         derived: who may answer a sentence (state, sole, gold), and its rank
    leases        who has which sentence open
    generations   the results of each training
    generated     what SeqMix generated, and what people vetoed
    external      what another annotation tool holds, by its own ids

Text is JSON in ASCII, since PostgreSQL holds no NUL and neither holds half a surrogate pair.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
)

_Key = BigInteger().with_variant(Integer, "sqlite")  # SQLite counts up only what it calls INTEGER

tables = MetaData()

meta = Table(
    "meta",
    tables,
    Column("key", String(64), primary_key=True),
    Column("value", Text, nullable=False),
)

annotators = Table(
    "annotators",
    tables,
    Column("id", Integer, primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("token_sha256", String(64), unique=True),  # none: cannot log in
    Column("admin", Boolean, nullable=False),
    Column("created", Float, nullable=False),
)

sentences = Table(
    "sentences",
    tables,
    Column("id", Text, primary_key=True),
    Column("position", Integer, nullable=False, unique=True),
    Column("digest", String(32), nullable=False, unique=True),  # of the tokens
    Column("length", Integer, nullable=False),
    Column("tokens", Text, nullable=False),
    Column("text", Text),
    Column("offsets", Text),
    Column("seed", Text),  # tag rows known before the project began
)

events = Table(
    "events",
    tables,
    Column("seq", _Key, primary_key=True, autoincrement=True),
    Column("sentence_id", Text, ForeignKey("sentences.id"), nullable=False),
    Column("annotator_id", Integer, ForeignKey("annotators.id"), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("spans", Text, nullable=False),
    Column("sure", Text),
    Column("old", Text),
    Column("seconds", Float, nullable=False),
    Column("at", Float, nullable=False),
    Column("stream", String(16), nullable=False),
    Column("generation", Integer),
    Column("undoes", _Key, ForeignKey("events.seq"), unique=True),
    Index("events_of", "sentence_id", "annotator_id", "seq"),
    Index("events_by", "annotator_id", "seq"),
    sqlite_autoincrement=True,  # a seq is never used twice, even after a crash
)

current = Table(
    "current",
    tables,
    Column("sentence_id", Text, ForeignKey("sentences.id"), primary_key=True),
    Column("annotator_id", Integer, ForeignKey("annotators.id"), primary_key=True),
    Column("seq", _Key, ForeignKey("events.seq"), nullable=False),
    Column("since", _Key, nullable=False),  # seq of the annotator's first label that counts
    Column("kind", String(16), nullable=False),
    Index("current_by", "annotator_id", "kind", "seq"),
)

queue = Table(
    "queue",
    tables,
    Column("sentence_id", Text, ForeignKey("sentences.id"), primary_key=True),
    Column("stream", String(16), nullable=False),  # active, audit, seed or retired
    Column("state", String(8), nullable=False),  # free, held or done
    # random: the order of the audit stream, and of all sentences before the first ranking
    Column("lot", BigInteger, nullable=False),
    # random in [0, 1): below the overlap share, a second annotator is asked
    Column("chance", Float, nullable=False),
    # the only annotator who answered, if the sentence is active and nobody has it open
    Column("sole", Integer),
    # the event that counts: the adjudication, else the first annotator's answer
    Column("gold", _Key),
    Column("generation", Integer, nullable=False),  # of the ranking; -1: not ranked yet
    Column("rank", BigInteger, nullable=False),
    Column("score", Float),
    Column("suggestion", Text),
    Index("queue_lots", "stream", "state", "lot"),
    Index("queue_sole", "sole", "chance"),
)
Index("queue_order", queue.c.stream, queue.c.state, queue.c.generation.desc(), queue.c.rank)

leases = Table(
    "leases",
    tables,
    Column("sentence_id", Text, ForeignKey("sentences.id"), primary_key=True),
    Column("annotator_id", Integer, ForeignKey("annotators.id"), primary_key=True),
    Column("stream", String(16), nullable=False),
    Column("at", Float, nullable=False),
    Index("leases_at", "at"),
    Index("leases_by", "annotator_id", "at"),
)

generations = Table(
    "generations",
    tables,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("at", Float, nullable=False),
    Column("labeled", Integer, nullable=False),
    Column("tokens", Integer, nullable=False),
    Column("spans", Integer, nullable=False),
    Column("dev", Text),  # Generation.notes
    Column("audit", Text, nullable=False),
    Column("seconds", Text, nullable=False),
    Column("model", Text),
)

generated = Table(
    "generated",
    tables,
    # the digest of its tokens, so that a veto outlives the generation
    Column("id", String(32), primary_key=True),
    Column("generation", Integer, nullable=False),
    Column("place", Integer, nullable=False),
    Column("record", Text, nullable=False),
    Column("vetoed_by", Integer, ForeignKey("annotators.id")),
    Column("vetoed_at", Float),
    Index("generated_order", "generation", "place"),
)

external = Table(
    "external",
    tables,
    Column("kind", String(16), primary_key=True),  # task or annotation
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("parent", BigInteger),  # the task of an annotation
    Column("sentence_id", Text, ForeignKey("sentences.id")),  # none: a task without text
    Column("state", String(16), nullable=False),
    Column("value", Text, nullable=False),  # JSON, as the tool sent it
    Index("external_of", "sentence_id"),
    Index("external_in", "parent"),
    Index("external_by", "kind", "state"),
)
