"""Actions on the sources of suggestions of a project."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from seqmix.app.commands.label.actions.call import Call
from seqmix.app.console import emit, say
from seqmix.errors import ConfigError

_IGNORE_CASE = "ignore-case"


def add(call: Call) -> None:
    """Add a source, which suggests from now on."""
    name, kind, *rest = call.words
    if kind not in _KINDS:
        raise ConfigError(f"the kind of a source must be one of {', '.join(_KINDS)}; got {kind!r}")
    _KINDS[kind](call, name, rest)
    if kind != "llm":  # which says itself what it waits for
        off = f"seqmix project {call.folder} source off {name}"
        say(f"{name} suggests from now on; {off} turns it off")


def _add_dictionary(call: Call, name: str, words: list[str]) -> None:
    from seqmix.serve.sources.adding import add_dictionary
    from seqmix.serve.sources.terms import read_terms

    ignore_case = _IGNORE_CASE in words
    files = [word for word in words if word != _IGNORE_CASE]
    if len(files) != 1:
        raise ConfigError(
            "a dictionary must look like: source add NAME dictionary FILE "
            f"[{_IGNORE_CASE}]; got {' '.join(words)!r}"
        )
    with call.open() as project:
        terms = read_terms(Path(files[0]), project.store.read_tags(), ignore_case)
        add_dictionary(project.store, name, terms)


def _add_types(call: Call, name: str, words: list[str]) -> None:
    from seqmix.serve.sources.records import TYPES, add_source

    if words:
        raise ConfigError(f"types takes no further words; got {' '.join(words)!r}")
    with call.open() as project:
        add_source(project.store, name, TYPES, {})


def _add_tagger(call: Call, name: str, words: list[str]) -> None:
    from seqmix.app.taggers import absolute_name, tags_of
    from seqmix.serve.sources.records import TAGGER, add_source

    if len(words) != 1:
        raise ConfigError(
            "a tagger must look like: source add NAME tagger FOLDER, hf:FOLDER or spacy:NAME; "
            f"got {' '.join(words)!r}"
        )
    tagger = absolute_name(words[0])
    types = {tag[2:] for tag in tags_of(tagger)} - {""}
    with call.open() as project:
        shared = sorted(types & set(project.store.read_tags()))
        if not shared:
            raise ConfigError(
                f"the tagger must have at least one of {', '.join(project.store.read_tags())}; "
                f"{words[0]} has {', '.join(sorted(types))}; "
                f"{words[0].split(':')[0]}:MODEL:THEIRS=OURS maps the types of another library"
            )
        add_source(project.store, name, TAGGER, {"tagger": tagger, "tags": shared})


def _add_predictions(call: Call, name: str, words: list[str]) -> None:
    from seqmix.app.options import parse_read
    from seqmix.app.reading.data import read_data
    from seqmix.serve.sources.predictions import add_predictions

    if len(words) != 1:
        raise ConfigError(
            f"predictions must look like: source add NAME predictions FILE; got {' '.join(words)!r}"
        )
    counts = Counter[str]()
    with call.open() as project:
        predicted = read_data(words[0], parse_read(call.read))
        add_predictions(project.store, name, predicted, counts)
    emit("; ".join(f"{n} {what}" for what, n in counts.items() if n) or "no predictions")


def _add_llm(call: Call, name: str, words: list[str]) -> None:
    from seqmix.serve.sources.llm.endpoint import Endpoint
    from seqmix.serve.sources.records import LLM, add_source

    if len(words) != 2:
        raise ConfigError(
            "a language model must look like: source add NAME llm http://127.0.0.1:8080/v1 MODEL; "
            f"got {' '.join(words)!r}"
        )
    endpoint = Endpoint(words[0].rstrip("/"), words[1])
    with call.open() as project:
        add_source(project.store, name, LLM, endpoint.to_json())
        allowed = project.settings.send_text_to.split()
    if endpoint.origin not in allowed:
        places = " ".join([*allowed, endpoint.origin])
        say(
            f"nothing is sent before you say yes: on the page Sources, which shows the prompt, or "
            f"with seqmix project {call.folder} --set 'send_text_to={places}'"
        )


_KINDS = {
    "dictionary": _add_dictionary,
    "types": _add_types,
    "tagger": _add_tagger,
    "predictions": _add_predictions,
    "llm": _add_llm,
}


def show(call: Call) -> None:
    """Print the sources, one in a line."""
    from seqmix.serve.sources.records import list_sources

    with call.open() as project:
        for source in list_sources(project.store):
            emit(f"{source.name}\t{source.kind}\t{'on' if source.enabled else 'off'}")


def answers(call: Call) -> None:
    """Let a language model answer a share of the queue."""
    from seqmix.serve.sources.llm.endpoint import Endpoint
    from seqmix.serve.sources.records import LLM, change_source, find_source, read_settings

    name, share = call.words
    if not share.replace(".", "", 1).isdecimal():
        raise ConfigError(f"the share it answers is between 0 and 0.9; got {share!r}")
    with call.open() as project:
        source = find_source(project.store, name)
        if source.kind != LLM:
            raise ConfigError(f"only a language model can answer; {name} is a {source.kind} source")
        endpoint = Endpoint.from_json(read_settings(project.store, source))
        changed = endpoint.changed({"answers": float(share)})
        change_source(project.store, name, changed.to_json())


def turn_on(call: Call) -> None:
    """Turn sources on."""
    _enable(call, True)


def turn_off(call: Call) -> None:
    """Turn sources off."""
    _enable(call, False)


def remove(call: Call) -> None:
    """Remove sources and what they suggested."""
    from seqmix.serve.sources.records import remove_source

    with call.open() as project:
        for name in call.words:
            remove_source(project.store, name)


def _enable(call: Call, on: bool) -> None:
    from seqmix.serve.sources.records import enable_source

    with call.open() as project:
        for name in call.words:
            enable_source(project.store, name, on)
