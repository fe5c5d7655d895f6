"""The tables, the same in SQLite and PostgreSQL.

    meta          schema version, tags, what the trainer is doing
    annotators    names; tokens as hashes only
    sentences     the text; never changes
    events        every answer, skip, discard, undo and adjudication; triggers keep it append-only
    current       derived: each annotator's current answer
    queue         derived: who may answer a sentence (state, sole, gold), and its rank
    leases        who has which sentence open
    generations   the results of each training
    generated     what SeqMix generated, and what people vetoed
    external      what another annotation tool holds, by its own ids
    batches       answers that were given in one go, and may be taken back in one go
    tag_changes   every change of the tags; triggers keep it append-only, too
    sources       what suggests spans beside the model: dictionaries, models, files
    suggestions   what each source suggests for a sentence
    replies       what language models replied, by the hash of the request
    comments      what people wrote about a sentence
    doubts        answers that may be wrong, and whether a person looked at them

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
    Column("tag_change", _Key),  # the last change of the tags that the seed has read; none: 0
    Column("document", Text),  # the file or record it is from; its neighbors are next in position
)

batches = Table(
    "batches",
    tables,
    Column("id", _Key, primary_key=True, autoincrement=True),
    Column("kind", String(16), nullable=False),
    Column("annotator_id", Integer, ForeignKey("annotators.id"), nullable=False),
    Column("at", Float, nullable=False),
    Column("details", Text, nullable=False),
    Column("undone_by", Integer, ForeignKey("annotators.id")),
    Column("undone_at", Float),
    sqlite_autoincrement=True,
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
    Column("batch", _Key),  # the id of the batch it belongs to
    Column("shown", Text),  # by source: spans offered, of these kept, its kind, its model
    Index("events_of", "sentence_id", "annotator_id", "seq"),
    Index("events_by", "annotator_id", "seq"),
    Index("events_in", "batch"),
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
    Column("state", String(8), nullable=False),  # free, held, done or discard
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

tag_changes = Table(
    "tag_changes",
    tables,
    Column("id", _Key, primary_key=True, autoincrement=True),
    Column("kind", String(16), nullable=False),
    Column("tag", String(64), nullable=False),
    Column("details", Text, nullable=False),
    Column("annotator_id", Integer, ForeignKey("annotators.id")),  # none: by command
    Column("at", Float, nullable=False),
    Column("after", _Key, nullable=False),  # the last event before it
    sqlite_autoincrement=True,
)

sources = Table(
    "sources",
    tables,
    Column("id", Integer, primary_key=True),
    Column("name", String(64), nullable=False, unique=True),
    Column("kind", String(16), nullable=False),
    Column("settings", Text, nullable=False),
    Column("enabled", Boolean, nullable=False),
    Column("at", Float, nullable=False),
)

suggestions = Table(
    "suggestions",
    tables,
    Column("sentence_id", Text, ForeignKey("sentences.id"), primary_key=True),
    Column("source_id", Integer, ForeignKey("sources.id"), primary_key=True),
    Column("version", String(64), nullable=False),  # of what suggested: a prompt, a model
    Column("spans", Text, nullable=False),
    Column("at", Float, nullable=False),
    Index("suggestions_by", "source_id", "version"),
)

replies = Table(
    "replies",
    tables,
    Column("key", String(64), primary_key=True),  # a hash of the request
    Column("content", Text, nullable=False),  # marks, or why it has none
    Column("at", Float, nullable=False),
    Index("replies_at", "at"),
)

comments = Table(
    "comments",
    tables,
    Column("id", _Key, primary_key=True, autoincrement=True),
    Column("sentence_id", Text, ForeignKey("sentences.id"), nullable=False),
    Column("annotator_id", Integer, ForeignKey("annotators.id"), nullable=False),
    Column("at", Float, nullable=False),
    Column("text", Text, nullable=False),  # empty: only a flag
    Column("resolved_by", Integer, ForeignKey("annotators.id")),
    Column("resolved_at", Float),
    Index("comments_of", "sentence_id"),
    sqlite_autoincrement=True,
)

doubts = Table(
    "doubts",
    tables,
    Column("sentence_id", Text, ForeignKey("sentences.id"), primary_key=True),
    Column("kind", String(16), primary_key=True),
    Column("seq", _Key, ForeignKey("events.seq")),  # the answer in doubt; none: labels of the seed
    Column("score", Float, nullable=False),
    Column("details", Text, nullable=False),
    Column("kept_by", Integer, ForeignKey("annotators.id")),
    Column("kept_at", Float),
    Index("doubts_order", "score"),
)
