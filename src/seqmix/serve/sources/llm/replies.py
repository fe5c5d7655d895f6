"""What language models replied: kept by the hash of the request, so that none is paid for twice.

A prompt, a model or a tag that is changed and changed back asks nothing again. The newest are kept.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from hashlib import sha256
from typing import Any

from sqlalchemy import delete, func, insert, select

from seqmix.data.sentence import Sentence
from seqmix.serve.sources.llm.endpoint import Endpoint
from seqmix.serve.sources.llm.prompt import filled
from seqmix.serve.sources.stored import Suggestion
from seqmix.serve.store.records import Mark, dumps, loads
from seqmix.serve.store.schema import replies
from seqmix.serve.store.store import Store

MOST = 50_000  # replies of a project, some megabytes
_AT_ONCE = 1000  # that are forgotten when there are more


def request_key(
    endpoint: Endpoint, sentence: Sentence, tags: Sequence[str], guidelines: str
) -> str:
    """Return a hash of all that a reply depends on; how it is asked for is not part of it."""
    prompt = filled(endpoint.prompt, sentence, tags, guidelines)
    asked = [endpoint.url, endpoint.model, prompt, list(tags), list(sentence.tokens)]
    return sha256(dumps(asked).encode()).hexdigest()


def read_replies(store: Store, keys: Collection[str]) -> dict[str, Suggestion]:
    """Return the replies to some requests, as suggestions without the id of a sentence."""
    with store.reading() as conn:
        rows = conn.execute(select(replies).where(replies.c.key.in_(keys))).all()
    contents = {row.key: loads(row.content) for row in rows}
    return {
        key: Suggestion("", tuple(Mark(*mark) for mark in content["marks"]), content.get("problem"))
        for key, content in contents.items()
    }


def write_reply(store: Store, key: str, reply: Suggestion) -> None:
    """Keep a reply, and forget the oldest if there are too many."""
    content: dict[str, Any] = {"marks": [list(mark) for mark in reply.marks]}
    content |= {"problem": reply.problem} if reply.problem else {}
    with store.writing(durable=False) as conn:
        conn.execute(delete(replies).where(replies.c.key == key))
        conn.execute(insert(replies).values(key=key, content=dumps(content), at=time.time()))
        n = int(conn.execute(select(func.count()).select_from(replies)).scalar_one())
        if n > MOST:
            oldest = select(replies.c.key).order_by(replies.c.at)
            extra = oldest.limit(n - MOST + min(_AT_ONCE, MOST // 10))
            conn.execute(delete(replies).where(replies.c.key.in_(extra)))
