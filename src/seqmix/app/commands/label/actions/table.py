"""The actions of `seqmix project` by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from seqmix.app.commands.label.actions import annotators, bulk, safety, sources, tags, text
from seqmix.app.commands.label.actions.call import Action, Call
from seqmix.errors import ConfigError

ACTIONS: Mapping[str, Action] = {  # in the order of --help
    "tag add": Action(
        "NAME [none/unknown]",
        "Add a span type; open pages show it within seconds. The last word says what earlier "
        "answers mean for it: they contain none of it, or nobody looked for it.",
        tags.add,
    ),
    "tag list": Action("", "Print the tags: color, key, and how many spans have it.", tags.show),
    "tag rename": Action(
        "TAG NAME [yes]",
        "Rename a tag. This and the next four first say how many answers they affect, and ask; "
        "in a script, the word yes confirms. Answers keep their history.",
        tags.rename,
    ),
    "tag merge": Action("TAG OTHER [yes]", "Merge a tag into another one.", tags.merge),
    "tag split": Action(
        "TAG NAME NAME… [yes]",
        "Split a tag; one of the names may be the old one. Its spans wait on the Review page "
        "until somebody chooses.",
        tags.split,
    ),
    "tag retire": Action(
        "TAG [yes]",
        "Retire a tag: it is no longer offered, and its spans stay in the history.",
        tags.retire,
    ),
    "tag undo": Action("[yes]", "Take back the last change of the tags.", tags.undo),
    "tag recolor": Action("TAG NUMBER", "Give a tag one of 12 colors.", tags.recolor),
    "text add": Action(
        "FILE… [keep/drop]",
        "Add text, even while its page runs; duplicates are skipped and counted. The last word "
        "says what to do with labels in the text: keep them as seed, or drop them.",
        text.add,
        reads_files=True,
    ),
    "annotator add": Action(
        "NAME…", "Add annotators and print their links once.", annotators.add, makes_links=True
    ),
    "annotator renew": Action(
        "NAME…", "Print new links; the old ones stop working.", annotators.renew, makes_links=True
    ),
    "annotator revoke": Action(
        "NAME…", "Revoke the links of annotators; their answers stay.", annotators.revoke
    ),
    "source add": Action(
        "NAME KIND…",
        "Add a source of suggestions: NAME dictionary FILE [ignore-case], NAME types (the "
        "starter points at names), NAME tagger MODEL, NAME predictions FILE, or NAME llm "
        "ADDRESS MODEL.",
        sources.add,
        reads_files=True,
    ),
    "source list": Action("", "Print the sources of suggestions.", sources.show),
    "source on": Action("NAME…", "Turn sources on.", sources.turn_on),
    "source off": Action("NAME…", "Turn sources off: they no longer suggest.", sources.turn_off),
    "source answers": Action(
        "NAME SHARE",
        "Let a language model label a share of the queue under its own name; 0 stops it.",
        sources.answers,
    ),
    "source remove": Action("NAME…", "Remove sources and what they suggested.", sources.remove),
    "bulk predict": Action(
        "",
        "Let the running page's trainer predict the open sentences, for bulk show.",
        bulk.predict,
    ),
    "bulk show": Action(
        "RATE",
        "Print how many open sentences may be accepted so that at most RATE of them have an error.",
        bulk.show,
    ),
    "bulk accept": Action(
        "RATE ANNOTATOR", "Accept these sentences in the name of an annotator.", bulk.accept
    ),
    "bulk undo": Action("BATCH", "Undo one bulk accept.", bulk.undo),
    "backup": Action(
        "FOLDER", "Copy the project to a new folder, even while its page runs.", safety.backup
    ),
    "trust": Action(
        "", "Trust the PostgreSQL database of this project with your password.", safety.trust
    ),
}


def lines() -> list[tuple[str, str]]:
    """Return what can be typed and what it does, for --help and the reference."""
    return [(f"{name} {action.usage}".rstrip(), action.summary) for name, action in ACTIONS.items()]


def find_action(words: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Return the name of an action and the words it was given, their number checked."""
    for length in (2, 1):
        name = " ".join(words[:length])
        if name in ACTIONS and len(words) >= length:
            break
    else:
        raise ConfigError(f"there is no action {_unknown(words)}")
    action, rest = ACTIONS[name], tuple(words[length:])
    if not action.least <= len(rest) <= action.most:
        usage = f"{name} {action.usage}".rstrip()
        raise ConfigError(
            f"this action must look like: seqmix project FOLDER {usage}; got {' '.join(words)!r}"
        )
    return name, rest


def _unknown(words: Sequence[str]) -> str:
    """Say what was typed, what is near it, and what there is."""
    typed = " ".join(words[:2])
    group = [name for name in ACTIONS if name.split()[0] == words[0]]
    near = get_close_matches(typed, ACTIONS, n=1) or get_close_matches(words[0], ACTIONS, n=1)
    guess = f"did you mean {near[0]}? " if near and not group else ""
    return f"{typed[:80]!r}; {guess}There are {', '.join(group or ACTIONS)}"


def run_action(call: Call) -> None:
    """Run the action that the words of a call name."""
    name, words = find_action(call.words)
    action = ACTIONS[name]
    if (call.admin and name != "annotator add") or (call.url and not action.makes_links):
        raise ConfigError("--admin and --url belong to a new link: annotator add NAME")
    if call.read and not action.reads_files:
        raise ConfigError(
            "--read belongs to files: text add FILE, source add NAME predictions FILE"
        )
    action.run(Call(call.folder, words, call.admin, call.url, call.read))
