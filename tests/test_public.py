"""The public names, and what stands in README and docs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import seqmix
from seqmix.app.cli import COMMANDS, load

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_public_names_are_these() -> None:
    assert sorted(seqmix.__all__) == [
        "ActiveLearner",
        "POLICIES",
        "Perplexity",
        "PolicySpec",
        "Pool",
        "Replacement",
        "ScoreRange",
        "Sentence",
        "SeqMix",
        "SeqMixError",
        "Settings",
        "Span",
        "TagSet",
        "Tagger",
        "__version__",
        "read",
        "sample",
        "score",
        "spans",
        "train_few_labels",
        "write",
    ]
    assert all(getattr(seqmix, name) is not None for name in seqmix.__all__)


def test_a_type_checker_knows_every_public_name(tmp_path: Path) -> None:
    names = [name for name in seqmix.__all__ if name != "__version__"]
    (tmp_path / "snippet.py").write_text(
        "import seqmix\n" + "".join(f"reveal_type(seqmix.{name})\n" for name in names)
    )

    heavy = ("numpy", "pydantic", "scipy", "tokenizers", "torch", "transformers")
    skipped = "".join(f"[mypy-{name}.*]\nfollow_imports = skip\n" for name in heavy)
    ours = f"[mypy]\nmypy_path = {ROOT / 'src'}\nfollow_imports = silent\nignore_missing_imports = True\n"
    (tmp_path / "mypy.ini").write_text(ours + skipped)
    words = [sys.executable, "-m", "mypy", "snippet.py"]
    ended = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)

    told = re.findall(r'Revealed type is "(.*)"', ended.stdout)
    assert len(told) == len(names), ended.stdout + ended.stderr
    assert not [name for name, kind in zip(names, told, strict=True) if kind == "Any"]


def test_reading_data_and_showing_help_load_no_torch() -> None:
    code = "import sys, seqmix, seqmix.app.cli; seqmix.sample('gazette:dev'); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_command_and_option_named_in_the_docs_exists() -> None:
    names = [name for entries in COMMANDS.values() for name in entries]
    options = {
        name: {o for param in load(name).params for o in [*param.opts, *param.secondary_opts]}
        for name in names
    }
    lines = 0
    for page in PAGES:
        blocks = "\n".join(
            re.findall(r"```console\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.S)
        )
        for line in re.findall(r"^seqmix ([a-z].*)$", blocks, flags=re.M):
            name, *rest = line.split("#")[0].split()
            assert name in names, f"{page.name}: seqmix {name}"
            assert {word for word in rest if word.startswith("--")} <= options[name] | {"--help"}, (
                f"{page.name}: {line}"
            )
            lines += 1
    assert lines >= 5


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
