"""Routes about the whole project: its progress, generated sentences, the export."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Response
from starlette.background import BackgroundTask
from starlette.responses import FileResponse

from seqmix.data import formats
from seqmix.data.sentence import Sentence
from seqmix.serve.project_status import status
from seqmix.serve.settings import change_settings, read_settings
from seqmix.serve.store.current import answered_by_others_only
from seqmix.serve.store.rankings import read_generated, set_veto
from seqmix.serve.store.records import Generated
from seqmix.serve.store.sentences import read_labeled, read_sentences
from seqmix.serve.store.store import Store
from seqmix.serve.web.context import Admin, Context, User
from seqmix.serve.web.requests import Augmenting, Count, Offset, Veto
from seqmix.serve.web.responses import reply

_SUFFIXES = {"conll": "conll", "labelstudio": "json"}  # of the formats that are not JSONL
_SEQMIX: Mapping[str, Any] = {"augment": "sub", "rate": 0.2}
_MENTION: Mapping[str, Any] = {"augment": "mention", "rate": 1.0}
_FORMATS = ("conll", "jsonl-tokens", "jsonl-spans", "doccano", "prodigy", "labelstudio")


def project_routes(context: Context) -> APIRouter:
    """Return the routes about the whole project."""
    routes, store = APIRouter(prefix="/api"), context.store

    @routes.get("/status")
    def progress(user: User) -> Response:
        """Return answers, the model and what the trainer does, the F1, the curve, the forecast."""
        trouble = context.trouble()
        seen = (context.estimates, trouble, user.id, context.figures, context.pace)
        return reply(status(context.project, *seen))

    @routes.get("/generated")
    def generated(
        user: User, offset: Annotated[Offset, Query()] = 0, limit: Annotated[Count, Query()] = 50
    ) -> Response:
        """Return generated sentences, newest first, with their parents.

        Labels are left out where this annotator may still be asked about a parent.
        """
        page, total = read_generated(store, limit, offset)
        blind = bool(context.project.settings.overlap_share) and not user.admin
        records = _with_parents(store, page, user.id if blind else None)
        variant = read_settings(context.project.folder).augment
        return reply({"generated": records, "total": total, "variant": variant})

    @routes.post("/augmentation")
    def augmentation(body: Augmenting, user: Admin) -> Response:
        """Choose how sentences are generated from the next training on; the trainer notices."""
        changes = _SEQMIX if body.seqmix else _MENTION
        return reply({"variant": change_settings(context.project.folder, **changes).augment})

    @routes.post("/generated/{id}/veto")
    def veto(id: str, body: Veto, user: User) -> Response:
        """Keep a generated sentence out of training for good, or allow it again."""
        set_veto(store, id, user.id, body.veto)
        return reply({"id": id, "vetoed": body.veto})

    @routes.get(
        "/export",
        response_class=FileResponse,
        responses={200: {"content": {"application/octet-stream": {}}}},
    )
    def export(user: Admin, format: Annotated[str, Query(max_length=40)] = "conll") -> Response:
        """Return the labels so far as a file; for admins, as second answers are blind."""
        return _export(store, context.project.settings.name, format)

    return routes


def _export(store: Store, name: str, format: str) -> Response:
    if format not in _FORMATS:
        raise HTTPException(
            422, f"format must be one of {', '.join(_FORMATS)}; seqmix export writes more formats"
        )
    suffix = _SUFFIXES.get(format, "jsonl")
    folder = tempfile.TemporaryDirectory(prefix="seqmix-export-")
    path = Path(folder.name) / f"labels.{suffix}"
    try:
        formats.write(read_labeled(store), path, format)
    except BaseException:
        folder.cleanup()
        raise
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in name)[:60]
    return FileResponse(
        path,
        media_type="application/octet-stream",
        filename=f"{plain or 'labels'}.{suffix}",
        background=BackgroundTask(folder.cleanup),
    )


def _with_parents(store: Store, page: list[Generated], reader: int | None) -> list[dict[str, Any]]:
    ids = {id for generated in page for id in generated.record["lineage"]["parents"]}
    hidden = set() if reader is None else answered_by_others_only(store, reader, ids)
    sentences = {sentence.id: sentence for sentence in read_sentences(store, sorted(ids))}
    return [_with_parent_tokens(generated, sentences, hidden) for generated in page]


def _with_parent_tokens(
    generated: Generated, sentences: Mapping[str, Sentence], hidden: Collection[str]
) -> dict[str, Any]:
    record, lineage = generated.record, generated.record["lineage"]
    visible = not any(id in hidden for id in lineage["parents"])
    parents = [
        {
            "id": id,
            "tokens": sentences[id].tokens if id in sentences else [],
            "window": window if visible else None,
        }
        for id, window in zip(lineage["parents"], lineage["windows"], strict=False)
    ]
    mixed = lineage["weight"] is not None and visible
    return {
        "id": generated.id,
        "generation": generated.generation,
        "tokens": record["tokens"],
        "tags": [_shares(row) if visible else {} for row in record.get("ner_tags") or []],
        "method": lineage["method"],
        "window": lineage["windows"][lineage["into"]] if mixed else None,
        "parents": parents,
        "weight": lineage["weight"],
        "score": lineage["score"],
        "vetoed": generated.vetoed,
    }


def _shares(row: Any) -> dict[str, float]:
    """Return the shares of a tag row: "B-PER" -> {"B-PER": 1.0}."""
    return row if isinstance(row, dict) else {row: 1.0} if isinstance(row, str) else {}
