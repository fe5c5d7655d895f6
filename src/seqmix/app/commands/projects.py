"""`seqmix init`, `export` and `project`: from raw text to a project, and from a project to labeled data."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from seqmix.app.commands.project_keeping import backup, trust
from seqmix.app.config import Policy
from seqmix.app.console import count, emit, progress, say
from seqmix.app.read_data import (
    Comment,
    FormatName,
    Misaligned,
    Quiet,
    TagColumn,
    TokenColumn,
    format_options,
    group,
    labeled_data,
    reading,
)
from seqmix.app.read_text import read_text
from seqmix.data import formats
from seqmix.data.scheme import SCHEMES
from seqmix.data.sentence import Sentence
from seqmix.errors import ConfigError, DataError

if TYPE_CHECKING:
    from seqmix.serve.project import Created, Project

Folder = Annotated[Path, typer.Argument(help="A project folder made by init.")]
_learning, _measuring = group("How the model learns along"), group("How it is measured")
project = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Look after a project: status, annotators, settings.",
)
project.command(epilog="Example: seqmix project trust names")(trust)
project.command(epilog="Example: seqmix project backup names names-monday")(backup)


def init(
    folder: Annotated[Path, typer.Argument(metavar="PROJECT", help="The folder to make.")],
    text: Annotated[
        str,
        typer.Option(
            help="What to label: a file or folder in any format read, raw text a line a sentence, or a CSV file."
        ),
    ],
    tags: Annotated[
        str, typer.Option(help="The types of span there are, such as PER,ORG,LOC; at most 35.")
    ],
    column: Annotated[str | None, reading(help="CSV: the column that holds the text.")] = None,
    unit: Annotated[
        str, reading(help="Raw text: what a sentence is, a line or a paragraph.")
    ] = "line",
    labels: Annotated[
        str | None,
        typer.Option(
            help="What to do with labels the text has already: keep them as seed, or drop them."
        ),
    ] = None,
    seed_labels: Annotated[
        str | None, typer.Option(help="More labeled sentences to learn from, in any format read.")
    ] = None,
    guidelines: Annotated[
        Path | None, typer.Option(help="A Markdown file to show beside the text.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="What to call the project; the folder's name by default.")
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            help="postgresql://user@host/database for a team; a file in the folder by default."
        ),
    ] = None,
    policy: Annotated[
        str, _learning(help="How sentences are chosen: " + ", ".join(get_args(Policy)) + ".")
    ] = "nte",
    audit: Annotated[
        float, _measuring(help="The share of random sentences, for an honest F1.")
    ] = 0.1,
    overlap: Annotated[
        float, _measuring(help="The share of sentences a second annotator answers too.")
    ] = 0.0,
    batch: Annotated[int, _learning(help="New answers between two trainings.")] = 10,
    encoder: Annotated[
        str, _learning(help="starter, a Hugging Face name, or a folder.")
    ] = "starter",
    head: Annotated[str, _learning(help="linear or crf.")] = "linear",
    augment: Annotated[
        str, _learning(help="SeqMix's variant: whole, sub, label, or none.")
    ] = "sub",
    direction: Annotated[str, typer.Option(help="Of the text: auto, ltr or rtl.")] = "auto",
    seed: Annotated[int, _learning(help="Same seed, same order of sentences.")] = 0,
    format: FormatName = None,
    tag_column: TagColumn = -1,
    token_column: TokenColumn = 0,
    comment: Comment = "",
    misaligned: Misaligned = "error",
) -> None:
    """Make a project of raw text, for people to label."""
    from seqmix.serve.project import Settings, create_project

    if labels not in (None, "keep", "drop"):
        raise ConfigError(f"--labels is {labels!r}; it must be keep or drop")
    options = format_options(
        tag_column=tag_column, token_column=token_column, comment=comment, misaligned=misaligned
    )
    settings = Settings(
        name=name or folder.absolute().name,
        tags=tuple(tag.strip() for tag in tags.split(",")),
        store=store,
        policy=_known_policy(policy, head),
        audit_share=audit,
        overlap_share=overlap,
        batch=batch,
        direction=direction,
        encoder=encoder,
        head=head,
        augment=augment,
        seed=seed,
    )
    seeds = _seeds(seed_labels, options) if seed_labels is not None else []
    shown = _guidelines(guidelines)
    with progress("reading", "sentences") as update:
        given = _counted(
            _as_asked(read_text(text, format, options, column, unit), labels, text), update
        )
        made = create_project(folder, given, settings, shown, seeds, keep_labels=labels == "keep")
    _tell(made, folder, options)


def export(
    folder: Folder,
    out: Annotated[
        Path, typer.Option(help="Where to write; the format follows the name unless told.")
    ],
    format: Annotated[
        str | None,
        typer.Option(
            help="The format to write: "
            + ", ".join(n for n, f in formats.FORMATS.items() if f.write)
        ),
    ] = None,
    all_sentences: Annotated[
        bool,
        typer.Option("--all", help="Write the sentences nobody has labeled too, without labels."),
    ] = False,
    partial: Annotated[
        str, typer.Option(help="Sentences labeled in part: keep them so, or drop them.")
    ] = "keep",
    scheme: Annotated[
        str | None,
        typer.Option(help="The scheme to write: " + ", ".join(SCHEMES[:-1]) + ". BIO by default."),
    ] = None,
    harden: Annotated[
        bool,
        typer.Option(
            help="Write soft seed labels as their heaviest tag where the format holds no soft ones."
        ),
    ] = False,
) -> None:
    """Write what a project's people labeled: adjudicated, else as the first annotator said, and the seed."""
    if partial not in ("keep", "drop"):
        raise ConfigError(f"--partial is {partial!r}; it must be keep or drop")
    options = format_options(scheme=scheme, harden=harden)
    left_out = written = 0

    def chosen(found: Iterable[Sentence]) -> Iterator[Sentence]:
        nonlocal left_out, written
        holds = _holds(format, out)
        for sentence in found:
            if (
                sentence.labeled
                and None in sentence.tags
                and (partial == "drop" or "missing" not in holds)
            ):
                if partial == "keep":
                    raise DataError(
                        f"sentence {sentence.id!r} is labeled in part, which this format cannot hold; conll and jsonl-tokens can, "
                        "and --partial drop leaves such sentences out"
                    )
                left_out += 1
                continue
            written += 1
            yield sentence

    with _opened(folder) as own:
        if not all_sentences and next(iter(own.store.labeled()), None) is None:
            raise DataError(
                f"nobody has labeled a sentence of {folder} yet; --all writes the text without labels"
            )
        formats.write(chosen(own.store.labeled(unlabeled=all_sentences)), out, format, options)
    notes = [
        *([f"{left_out} labeled in part left out"] if left_out else []),
        *(f"{n} {what}" for what, n in sorted(options.counts.items())),
    ]
    say("; ".join([f"{count(written, 'sentence')} written to {out}", *notes]))


@project.command(epilog="Example: seqmix project status names")
def status(folder: Folder, json_out: Quiet = False) -> None:
    """Say how far a project is, how good its model, and how far people agree."""
    from seqmix.app.commands.project_status import facts, lines

    with _opened(folder) as own:
        found = facts(own)
    emit(json.dumps(found, ensure_ascii=False) if json_out else "\n".join(lines(found)))


@project.command(epilog="Example: seqmix project annotators names --add omar")
def annotators(
    folder: Folder,
    add: Annotated[
        list[str] | None, typer.Option(help="Add somebody and print their link, this once.")
    ] = None,
    admin: Annotated[bool, typer.Option(help="Those added may adjudicate and add others.")] = False,
    renew: Annotated[
        list[str] | None, typer.Option(help="Print a new link for somebody; the old one ends.")
    ] = None,
    revoke: Annotated[
        list[str] | None, typer.Option(help="End somebody's link; their answers stay.")
    ] = None,
    url: Annotated[
        str, typer.Option(help="Where the page is reached, as annotate says.")
    ] = "http://127.0.0.1:8765",
) -> None:
    """Say who annotates; add somebody, renew or end a link."""
    with _opened(folder) as own:
        links = [(name, own.store.add_annotator(name, admin)) for name in add or []]
        links += [(name, own.store.fresh_token(_known(own, name))) for name in renew or []]
        for name in revoke or []:
            own.store.revoke(_known(own, name))
            say(f"{name} can no longer log in")
        for name, token in links:
            emit(f"{name}\t{url.rstrip('/')}/login?token={token}")
        if links:
            say(
                "a link is shown this once, and whoever has it answers in that name: send it privately"
            )
        elif not revoke:
            for one in own.store.work():
                emit(
                    f"{one.annotator.name}\t{one.labeled} labeled"
                    + ("\tadmin" if one.annotator.admin else "")
                )


@project.command("set", epilog="Example: seqmix project set names --batch 20")
def change(
    folder: Folder,
    policy: Annotated[str | None, typer.Option(help="How sentences are chosen.")] = None,
    audit: Annotated[
        float | None,
        typer.Option(help="The share of random sentences, of those set apart by init."),
    ] = None,
    overlap: Annotated[
        float | None, typer.Option(help="The share of sentences a second annotator answers too.")
    ] = None,
    batch: Annotated[int | None, typer.Option(help="New answers between two trainings.")] = None,
    add_tag: Annotated[
        list[str] | None,
        typer.Option(help="One more type of span; open pages show it within seconds."),
    ] = None,
    earlier: Annotated[
        str | None,
        typer.Option(
            help="What earlier answers say of it: none (they leave it out, so it is not there) or unknown (nobody looked)."
        ),
    ] = None,
) -> None:
    """Change settings of a project; a running page takes up tags at once, the rest when it is started again."""
    from seqmix.serve.project import change_settings, check_tags, read_settings

    before = read_settings(folder)
    if add_tag:
        check_tags((*before.tags, *add_tag))
        _ask_of_earlier(folder, add_tag, earlier)
    elif earlier is not None:
        raise ConfigError(
            "--earlier says what earlier answers mean for a new tag; give it with --add-tag"
        )
    given: dict[str, Any] = {"audit_share": audit, "overlap_share": overlap, "batch": batch}
    if policy is not None:
        given["policy"] = _known_policy(policy, before.head)
    if add_tag:
        given["tags"] = (*before.tags, *add_tag)
    after = change_settings(
        folder, **{key: value for key, value in given.items() if value is not None}
    )
    if add_tag:
        _opened(folder).close()  # the store takes the tags over, and running servers look there
    emit(after.toml().rstrip())


def _ask_of_earlier(folder: Path, tags: list[str], earlier: str | None) -> None:
    """What the answers there are say of new tags; written down first, so that a kill in between leaves no tag without it."""
    if earlier not in (None, "none", "unknown"):
        raise ConfigError(f"--earlier is {earlier!r}; it must be none or unknown")
    with _opened(folder) as own:
        counts, names = own.store.counts(), ", ".join(tags)
        if not counts.labeled + counts.seed:
            return
        if earlier is None and sys.stdin.isatty():
            say(
                f"{counts.labeled + counts.seed} sentences are labeled without {names}. Is it certain that there is none in them?"
            )
            earlier = (
                "none"
                if typer.confirm("yes: there is none; no: nobody looked for it", err=True)
                else "unknown"
            )
        if earlier is None:
            raise ConfigError(
                f"{counts.labeled + counts.seed} sentences are labeled already: --earlier none says that there is no {names} in them, "
                "--earlier unknown that nobody looked for it"
            )
        if earlier == "unknown":
            own.store.open_tags(tags)


def _opened(folder: Path) -> Project:
    from seqmix.serve.project import open_project

    return open_project(folder)


def _known_policy(name: str, head: str) -> str:
    if name not in get_args(Policy):
        raise ConfigError(f"there is no policy {name!r}; there are {', '.join(get_args(Policy))}")
    if head not in ("linear", "crf"):
        raise ConfigError(f"--head is {head!r}; it must be linear or crf")
    if name == "lc" and head != "crf":
        raise ConfigError(
            "the policy lc is the probability of the Viterbi path and needs --head crf; lc_prime is for the linear head"
        )
    return name


def _known(own: Project, name: str) -> int:
    found = own.store.annotator(name)
    if found is None:
        there = ", ".join(one.name for one in own.store.annotators()) or "nobody yet"
        raise ConfigError(f"there is no annotator {name!r}; there is {there}")
    return found.id


def _seeds(name: str, options: formats.Options) -> list[Sentence]:
    """Labeled sentences under names of their own, so that they do not meet those of the text."""
    return [
        replace(sentence, id=f"seed:{sentence.id}")
        for sentence in labeled_data(name, None, options)
    ]


def _guidelines(path: Path | None) -> str | None:
    try:
        return None if path is None else path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"cannot read the guidelines: {error.strerror if isinstance(error, OSError) else 'expected UTF-8 text'}",
            path,
        ) from error


def _as_asked(given: Iterable[Sentence], labels: str | None, name: str) -> Iterator[Sentence]:
    """The sentences with their labels or without; which of the two must be said where there are labels."""
    for sentence in given:
        if sentence.labeled and labels is None:
            raise ConfigError(
                f"{name} has labels already: --labels keep takes them as seed, --labels drop asks for them anew"
            )
        yield sentence.unlabeled() if labels == "drop" else sentence


def _counted(given: Iterable[Sentence], update: Callable[..., None]) -> Iterator[Sentence]:
    for number, sentence in enumerate(given, 1):
        yield sentence
        if number % 1000 == 0:
            update(number)


def _holds(format: str | None, out: Path) -> frozenset[str]:
    """What the format to write can hold; an unknown one is left to `formats.write` to refuse."""
    found = (
        formats.FORMATS.get(format)
        if format
        else next(
            (f for f in formats.FORMATS.values() if out.name.endswith(f.suffixes or ("\0",))), None
        )
    )
    return found.holds if found is not None else frozenset({"missing"})


def _tell(made: Created, folder: Path, options: formats.Options) -> None:
    """What there is now, and what to do next."""
    twice, empty = made.text.duplicates + made.seed.duplicates, made.text.empty
    notes = [
        f"{n} {what}"
        for what, n in (
            (f"duplicate{'s' * (twice != 1)} stored once", twice),
            ("without tokens left out", empty),
        )
        if n
    ]
    notes += [
        f"{n} {what}"
        for what, n in sorted(options.counts.items())
        if what != "no tokens" or not empty
    ]
    emit(
        "; ".join(
            [
                f"{folder}: {made.pool} sentences to label, {made.audit} of them set apart for an honest F1",
                *notes,
            ]
        )
    )
    if made.labeled:
        emit(f"{made.labeled} sentences have labels already: the seed")
    emit(
        f"\nseqmix annotate {folder}\n    opens the page and prints your link: you are the admin, under your user name"
    )
    emit(
        f"seqmix project annotators {folder} --add NAME\n    prints a link for somebody else; each answers under a token of their own"
    )
    emit(
        f"seqmix project status {folder}\nseqmix export {folder} --format conll --out labels.conll"
    )
