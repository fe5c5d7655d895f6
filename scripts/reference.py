"""Write the reference pages of docs from the code they describe.

python scripts/reference.py cli         # docs/cli.md, from the table of commands
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

    lines = ["# Commands", "", "Written by `python scripts/reference.py cli`; do not edit.", ""]
    for group, entries in COMMANDS.items():
        lines += [f"## {group}", ""]
        for name, entry in entries.items():
            command = load(name)
            lines += [f"### seqmix {name}", "", *(command.help or "").split("\n"), ""]
            lines += ["```console", entry.example, "```", ""]
            lines += ["| argument or option | default | meaning |", "|---|---|---|"]
            lines += [_row(parameter) for parameter in command.params if parameter.name != "help"]
            lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _row(parameter: Any) -> str:
    """Return one line of a table of options."""
    names = ", ".join(f"`{name}`" for name in _names(parameter))
    default = "required" if parameter.required else _default(parameter)
    return f"| {names} | {default} | {' '.join((parameter.help or '').split())} |"


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


PAGES: dict[str, Callable[[], str]] = {"cli": cli_page}


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
