"""What stands around annotating: how far the project is, what was generated, the export."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Response
from starlette.background import BackgroundTask
from starlette.responses import FileResponse

from seqmix.data import formats
from seqmix.serve.project_status import status
from seqmix.serve.store.current import answered_by_others_only
from seqmix.serve.store.rankings import read_generated, set_veto
from seqmix.serve.store.records import Generated
from seqmix.serve.store.sentences import read_labeled, read_sentences
from seqmix.serve.store.store import Store
from seqmix.serve.web.context import Admin, Me, Site
from seqmix.serve.web.requests import Count, Offset, Veto
from seqmix.serve.web.responses import reply

_ENDINGS = {"conll": "conll", "labelstudio": "json"}  # of a file that is no .jsonl
_FILES = ("conll", "jsonl-tokens", "jsonl-spans", "doccano", "prodigy", "labelstudio")


def router(site: Site) -> APIRouter:
    """The routes for one project."""
    routes, store = APIRouter(prefix="/api"), site.store

    @routes.get("/status")
    def how_far(me: Me) -> Response:
        """Answers, the model and what the trainer does, the honest F1, the curve, the forecast."""
        return reply(status(site.project, site.estimates, site.trainer(), me.id))

    @routes.get("/generated")
    def generated(
        me: Me, offset: Annotated[Offset, Query()] = 0, limit: Annotated[Count, Query()] = 50
    ) -> Response:
        """What SeqMix made of the labels, newest first, with its parents; without the labels of those this annotator may be asked yet."""
        found, total = read_generated(store, limit, offset)
        blind = bool(site.project.settings.overlap_share) and not me.admin
        return reply(
            {"generated": _with_parents(store, found, me.id if blind else None), "total": total}
        )

    @routes.post("/generated/{id}/veto")
    def veto(id: str, body: Veto, me: Me) -> Response:
        """Keep a generated sentence out of training for good, or take that back."""
        set_veto(store, id, me.id, body.veto)
        return reply({"id": id, "vetoed": body.veto})

    @routes.get(
        "/export",
        response_class=FileResponse,
        responses={200: {"content": {"application/octet-stream": {}}}},
    )
    def export(me: Admin, format: Annotated[str, Query(max_length=40)] = "conll") -> Response:
        """The labels so far as a file. For admins: who is asked for a second answer must not read the first."""
        if format not in _FILES:
            raise HTTPException(
                422,
                f"this format cannot be downloaded; there are {', '.join(_FILES)}, and more with seqmix export",
            )
        ending = _ENDINGS.get(format, "jsonl")
        folder = tempfile.TemporaryDirectory(prefix="seqmix-export-")
        path = Path(folder.name) / f"labels.{ending}"
        try:
            formats.write(read_labeled(store), path, format)
        except BaseException:
            folder.cleanup()
            raise
        name = (
            "".join(
                c if c.isascii() and (c.isalnum() or c in "-_") else "-"
                for c in site.project.settings.name
            )[:60]
            or "labels"
        )
        return FileResponse(
            path,
            media_type="application/octet-stream",
            filename=f"{name}.{ending}",
            background=BackgroundTask(folder.cleanup),
        )

    return routes


def _with_parents(store: Store, found: list[Generated], reader: int | None) -> list[dict[str, Any]]:
    ids = {id for one in found for id in one.record["lineage"]["parents"]}
    unread = set() if reader is None else answered_by_others_only(store, reader, ids)
    known = {sentence.id: sentence for sentence in read_sentences(store, sorted(ids))}
    shown_ones = []
    for one in found:
        lineage = one.record["lineage"]
        open_to = unread.isdisjoint(lineage["parents"])
        parents = [
            {
                "id": id,
                "tokens": known[id].tokens if id in known else [],
                "window": window if open_to else None,
            }
            for id, window in zip(lineage["parents"], lineage["windows"], strict=False)
        ]
        shown_ones.append(
            {
                "id": one.id,
                "generation": one.generation,
                "tokens": one.record["tokens"],
                "tags": [_row(row) if open_to else {} for row in one.record.get("ner_tags") or []],
                "method": lineage["method"],
                "window": lineage["windows"][lineage["into"]]
                if lineage["weight"] is not None and open_to
                else None,
                "parents": parents,
                "weight": lineage["weight"],
                "score": lineage["score"],
                "vetoed": one.vetoed,
            }
        )
    return shown_ones


def _row(row: Any) -> dict[str, float]:
    return row if isinstance(row, dict) else {row: 1.0} if isinstance(row, str) else {}
