"""Write the reference pages of docs from the code they describe.

python scripts/reference.py cli         # docs/cli.md, from the table of commands
python scripts/reference.py config      # docs/config.md, from the tree of settings
python scripts/reference.py cli --check # only say whether the page is current
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"


def cli_page() -> str:
    """Return docs/cli.md: each command with its example, arguments and options."""
    from seqmix.app.cli import COMMANDS, load

    lines = [
        "# Commands",
        "",
        "<!-- Written by `python scripts/reference.py cli`; do not edit. -->",
        "",
        "`seqmix COMMAND --help` shows the same in the terminal; "
        "data is a file, a folder or a sample such as `gazette:train` ([formats](data.md)).",
        "",
    ]
    for group, entries in COMMANDS.items():
        lines += [f"## {group}", ""]
        for name, entry in entries.items():
            command = load(name)
            lines += [f"### seqmix {name}", "", *(command.help or "").split("\n"), ""]
            lines += ["```console", entry.example, "```", ""]
            lines += ["| argument or option | default | meaning |", "|---|---|---|"]
            lines += [_row(parameter) for parameter in command.params if parameter.name != "help"]
            lines += ["", *_actions()] if name == "project" else []
            lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _actions() -> list[str]:
    """Return the table of the actions of a project."""
    from seqmix.app.commands.label.actions.table import lines

    rows = [f"| `{typed}` | {summary} |" for typed, summary in lines()]
    return ["| action | meaning |", "|---|---|", *rows]


def _row(parameter: Any) -> str:
    """Return one line of a table of options."""
    names = ", ".join(f"`{name}`" for name in _names(parameter))
    default = "required" if parameter.required else _default(parameter)
    meaning = (parameter.help or "").split("\n\n")[0]  # what follows has a table of its own
    return f"| {names} | {default} | {' '.join(meaning.split())} |"


def _names(parameter: Any) -> Iterator[str]:
    if parameter.param_type_name == "argument":
        yield parameter.metavar or parameter.name.upper()
        return
    yield from parameter.opts
    yield from parameter.secondary_opts


def _default(parameter: Any) -> str:
    value = parameter.default
    if parameter.is_flag if hasattr(parameter, "is_flag") else False:
        return "on" if value else "off"
    return "" if value in (None, "", [], ()) or not parameter.show_default else f"`{value}`"


def config_page() -> str:
    """Return docs/config.md: each key of a config with its values, default and meaning."""
    from seqmix.app.config import PRESETS, Config
    from seqmix.settings import described_keys

    presets = ", ".join(f"`{path.stem}`" for path in sorted(PRESETS.glob("*.toml")))
    lines = [
        "# Config",
        "",
        "<!-- Written by `python scripts/reference.py config`; do not edit. -->",
        "",
        "`seqmix simulate` reads a preset, then the TOML file of `--config`, "
        "then `--set key=value`.",
        f"The presets are {presets}.",
        "A sweep sets the same keys, and so does `training.toml` in the folder of a project, "
        "except for the keys and sections marked *simulations only*.",
        "Keys marked *in projects* are settings of the project instead, "
        "which `seqmix project FOLDER --set` changes.",
        "The keys of `[augment]` are those of `seqmix augment --set` and, in Python, of `SeqMix`.",
        "",
    ]
    schema = Config.model_json_schema(by_alias=True)
    for section, field, sentence in described_keys(Config):
        inner = list(described_keys(field.annotation))
        about = sentence or field.annotation.__doc__
        about += _note(section)
        lines += [f"## {f'[{section}]' if inner else section}", "", about, ""]
        if not inner:
            continue
        lines += ["| key | values | default | meaning |", "|---|---|---|---|"]
        shapes = schema["$defs"][field.annotation.__name__]["properties"]
        for key, _, meaning in inner:
            default = getattr(field.default, key)
            shown = "" if default is None else f"`{_spelled(default)}`"
            values = _values(f"{section}.{key}", shapes[key])
            lines.append(f"| `{key}` | {values} | {shown} | {meaning}{_note(f'{section}.{key}')} |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _note(key: str) -> str:
    """Say where else a key counts than in simulations."""
    from seqmix.app.project_config import IN_PROJECT, REFUSED

    if key in IN_PROJECT:
        return f" *In projects: `--set {IN_PROJECT[key]}`.*"
    return " *Simulations only.*" if key in REFUSED else ""


def _spelled(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _values(key: str, shape: dict[str, Any]) -> str:
    """Return the values a key takes, in words, from its JSON schema."""
    from seqmix.query.policies import POLICIES

    if key == "query.policy":
        return ", ".join(f"`{name}`" for name in POLICIES)
    if key == "augment.score_range":
        return "text"
    if "anyOf" in shape:
        shapes = [each for each in shape["anyOf"] if each.get("type") != "null"]
        return " or ".join(_values("", each) for each in shapes)
    if "enum" in shape:
        return ", ".join(f"`{value}`" for value in shape["enum"])
    if shape.get("type") == "array":
        return "a list of them"
    if shape.get("type") == "string":
        return f"`{shape['const']}`" if "const" in shape else "text"
    if shape.get("type") == "boolean":
        return "`true`, `false`"
    words = "whole number" if shape.get("type") == "integer" else "number"
    limits = {
        "minimum": "from",
        "exclusiveMinimum": "above",
        "maximum": "to",
        "exclusiveMaximum": "below",
    }
    parts = [
        f"{word} {shape[name]:g}"
        for name, word in limits.items()
        if name in shape and abs(shape[name]) < 1e5
    ]
    return " ".join([words, *parts])


PAGES: dict[str, Callable[[], str]] = {"cli": cli_page, "config": config_page}


def main() -> None:
    """Write a page, or check it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("page", choices=PAGES)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if it differs")
    arguments = parser.parse_args()
    path, text = DOCS / f"{arguments.page}.md", PAGES[arguments.page]()
    if arguments.check:
        sys.exit(not path.is_file() or path.read_text(encoding="utf-8") != text)
    path.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
