"""The tags in project.toml, which follow those of the store.

A change is committed in the store, then written to the file; whoever opens the project next does
what a kill in between left undone. A tag that somebody added to the file by hand is added to the
store.
"""

from __future__ import annotations

from pathlib import Path

from seqmix.errors import ConfigError
from seqmix.serve.settings import SETTINGS, ProjectSettings, change_settings
from seqmix.serve.store.store import Store
from seqmix.serve.store.tags.history import TagChange
from seqmix.serve.tags.changes import Wish, change_tags

_WRITTEN = "tags_written"  # note: the last change of the tags that project.toml has


def change_project_tags(
    folder: Path, store: Store, wish: Wish, by: int | None = None, newest: int | None = None
) -> TagChange:
    """Change the tags of a project, in its store and in project.toml."""
    change = change_tags(store, wish, by, newest)
    _write(folder, store)
    return change


def settle_tags(folder: Path, settings: ProjectSettings, store: Store) -> ProjectSettings:
    """Bring the tags of project.toml and of the store together; refuse one that was taken away."""
    history, tags = store.tag_history(), store.read_tags()
    is_behind = (store.read_note(_WRITTEN) or 0) < history.newest
    if settings.tags == tags and not is_behind:
        return settings
    known = {name for c in history.changes for name in (*c.details.get("tags", ()), c.tag)}
    removed = [tag for tag in tags if tag not in settings.tags]
    if removed and not is_behind:
        raise ConfigError(
            f"{folder / SETTINGS}: the tag {removed[0]!r} is missing; put it back, and"
            f" seqmix project FOLDER tag retire {removed[0]} takes it away"
        )
    added = [t for t in settings.tags if t not in tags and not (is_behind and t in known)]
    for tag in added:
        change_tags(store, Wish("add", tag))
    if not added and not is_behind:
        store.set_tags(settings.tags)  # in another order
        return settings
    return _write(folder, store)


def _write(folder: Path, store: Store) -> ProjectSettings:
    with store.writing(durable=False):  # so that of two changes the later one is written last
        settings = change_settings(folder, tags=store.read_tags())
        store.write_note(_WRITTEN, store.tag_history().newest)
        return settings
