"""The measured part of docs/results.md, written from small made-up tables."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from seqmix.app.sweep.spec import read_sweep
from seqmix.app.sweep.table import COLUMNS, Row, read_results, write_results
from seqmix.errors import DataError

ROOT = Path(__file__).resolve().parents[2]

from results import BEGIN, END, write_page  # noqa: E402
from results_numbers import (  # noqa: E402
    by_tokens,
    compare,
    corrected,
    f1_at,
    judged,
    mean_of,
    measure_all,
    same_sentences,
    seen,
)
from results_words import p_value, shown_in, signed, verdict  # noqa: E402

SIZES = (200, 300, 400, 500, 600, 700)
MAIN = """title = "Main curves, CoNLL-03"
data = "conll03"
preset = "conll03"
seeds = 10
[arms."none"]
"augment.variant" = "none"
[arms."none at 10 epochs"]
"augment.variant" = "none"
"loop.match_steps" = false
[arms."duplicate"]
"augment.variant" = "duplicate"
[arms."sub"]
[arms."label"]
"augment.variant" = "label"
"""
EPOCHS = """title = "Longer training alone"
data = "conll03"
preset = "conll03"
seeds = 5
[arms."none"]
"augment.variant" = "none"
"loop.match_steps" = false
[grid]
"training.epochs" = [10, 20]
"""
SETTINGS = """title = "Something new"
data = "conll03"
preset = "conll03"
seeds = 5
[arms."none"]
grid = false
"augment.variant" = "none"
[arms."sub"]
[grid]
"augment.alpha" = [2, 4]
"""
Heights = Mapping[int, float]  # F1 at the first size by seed; the curve rises from there


class Repository:
    """Sweep files, tables and a page in a temporary folder."""

    def __init__(self, folder: Path) -> None:
        self.experiments, self.results, self.docs = (
            folder / name for name in ("experiments", "results", "docs")
        )
        for path in (self.experiments, self.results, self.docs):
            path.mkdir()
        (self.docs / "results.md").write_text(
            f"# Results\n\nBefore.\n\n{BEGIN}\nold\n{END}\n\n## After\n"
        )

    def sweep(self, name: str, text: str) -> None:
        (self.experiments / f"{name}.toml").write_text(text)

    def table(
        self,
        name: str,
        arms: Mapping[str, Heights],
        sizes: Sequence[int] = SIZES,
        cpu: Container[tuple[str, int]] = (),
    ) -> None:
        experiment = read_sweep(self.experiments / f"{name}.toml")
        rows: list[Row] = []
        for arm in experiment.arms:
            for seed, height in arms.get(arm.name, {}).items():
                about = {
                    "experiment": name,
                    "arm": arm.name,
                    "seed": seed,
                    "config": arm.digest,
                    "data": arm.data,
                    "preset": arm.preset,
                }
                about |= {
                    "variant": arm.config.augment.variant,
                    "workers": 16,
                    "finished": "2026-01-01T00:00:00Z",
                }
                about["device"] = "cpu" if (arm.name, seed) in cpu else "H200"
                for number, size in enumerate(sizes):
                    f1 = height + 0.02 * number
                    made = size // 5 if arm.config.augment.variant != "none" else 0
                    found = {
                        "labeled": size,
                        "tokens": 15 * size,
                        "spans": 2 * size,
                        "generated": made,
                        "asked": size // 5,
                        "steps": 80,
                    }
                    scores = {"round": number, "test_f1": f1, "dev_f1": f1 + 0.01, "seconds": 4.0}
                    rows.append({**dict.fromkeys(COLUMNS), **about, **found, **scores})
        write_results(self.results / f"{name}.csv", rows)

    def write(self) -> str:
        write_page(self.experiments, self.results, self.docs)
        return (self.docs / "results.md").read_text()


def noisy(mean: float, seeds: Sequence[int], gain: float = 0.0) -> dict[int, float]:
    """Heights that differ by seed alike in all arms, and a little in each."""
    return {
        seed: mean + gain + 0.01 * np.sin(seed) + 0.001 * np.cos(7 * seed + 100 * gain)
        for seed in seeds
    }


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """A main experiment where `sub` wins clearly and lacks a seed, epochs of which one arm stands in main, and one without results."""
    made = Repository(tmp_path_factory.mktemp("repository"))
    for name, text in (("conll03-main", MAIN), ("epochs", EPOCHS), ("brand-new", SETTINGS)):
        made.sweep(name, text)
    ten = range(10)
    arms = {
        "none": noisy(0.70, ten),
        "none at 10 epochs": noisy(0.70, ten, -0.02),
        "duplicate": noisy(0.70, ten, 0.001),
    }
    made.table("conll03-main", {**arms, "sub": noisy(0.70, range(1, 10), 0.03)})
    made.table("epochs", {"none epochs=20": noisy(0.70, range(5), 0.04)})
    made.write()
    return made


def row(text: str, name: str, after: str = "") -> list[str]:
    """The cells of the first row that begins so."""
    line = next(
        line for line in text[text.index(after) :].splitlines() if line.startswith(f"| {name} |")
    )
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_what_stands_between_the_markers_is_replaced_and_nothing_else(
    repository: Repository,
) -> None:
    text = (repository.docs / "results.md").read_text()

    assert text.startswith(f"# Results\n\nBefore.\n\n{BEGIN}\n## In short\n") and text.endswith(
        f"\n{END}\n\n## After\n"
    )
    assert "old" not in text.split("\n")


def test_writing_again_changes_no_byte(repository: Repository) -> None:
    files = [repository.docs / "results.md", *sorted((repository.docs / "img").iterdir())]
    before = [(file.read_bytes(), file.stat().st_mtime_ns) for file in files]

    repository.write()

    assert [(file.read_bytes(), file.stat().st_mtime_ns) for file in files] == before
    assert [file.name for file in files[1:]] == ["results-conll03-main.png", "results-epochs.png"]
    assert all(len(content) < 120_000 for content, _ in before)


def test_a_page_without_markers_is_refused(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    (repository.docs / "results.md").write_text("# Results\n")

    with pytest.raises(DataError, match="results:begin"):
        repository.write()


def test_cells_are_the_mean_and_the_t_interval_over_the_seeds(repository: Repository) -> None:
    text = (repository.docs / "results.md").read_text()
    values = 100 * np.array(list(noisy(0.70, range(1, 10), 0.03).values()))
    half = stats.t.ppf(0.975, 8) * stats.sem(values)

    cells = row(text, "`sub`", "| arm |")

    assert cells[:3] == ["`sub`", "9", f"{values.mean():.1f} ± {half:.1f}"]
    assert cells[3].startswith(f"{values.mean() + 2:.1f}") and cells[8].startswith(
        f"{values.mean() + 5:.1f}"
    )  # 300, and the area of a line
    assert row(text, "*paper, CoNLL-03: sub*")[2:9] == [
        "*80.71*",
        "*82.82*",
        "*84.05*",
        "*85.28*",
        "*86.04*",
        "*86.24*",
        "*84.33*",
    ]


def test_only_seeds_that_both_arms_have_are_paired(repository: Repository) -> None:
    arms = measure_all(repository.experiments, repository.results)["conll03-main"].arms
    expected = {
        seed: 100 * (noisy(0.70, [seed], 0.03)[seed] - noisy(0.70, [seed])[seed])
        for seed in range(1, 10)
    }

    found = compare(arms["sub"], arms["none"], f1_at(200))

    assert dict(found.by_seed) == pytest.approx(expected)
    assert found.mean == pytest.approx(np.mean(list(expected.values())))
    assert found.wilcoxon == pytest.approx(2 / 2**9) and found.permutation == pytest.approx(
        2 / 2**9
    )
    assert row((repository.docs / "results.md").read_text(), "`sub`", "| over step-matched")[
        1:4:2
    ] == ["9", "9 of 9"]


def test_the_gain_is_the_extra_steps_and_what_is_left(repository: Repository) -> None:
    text = (repository.docs / "results.md").read_text()
    gain, steps, left = (
        float(cell.split()[0].replace("−", "-"))
        for cell in row(text, "200", "How much of the gain")[1:4]
    )

    assert gain == pytest.approx(steps + left, abs=0.011)
    assert (gain, steps, left) == pytest.approx((5, 2, 3), abs=0.1)
    assert row(text, "200", "How much of the gain")[-1] == "*+12.06*"


def test_one_table_tells_the_parts_of_the_gain_and_marks_what_is_shown(
    repository: Repository, tmp_path: Path
) -> None:
    text = (repository.docs / "results.md").read_text()
    parts = [row(text, f"{label}, at the start{tail}")[1] for label, tail in (
        ("as the paper compares", ": `sub` over 10 epochs of `none`"),
        ("– of that extra steps: `none` over 10 epochs of `none`", ""),
        ("– of that SeqMix: `sub` over step-matched `none`", ""),
    )]  # fmt: skip
    assert parts == ["+5.0 *(+12.1)*", "+2.0", "+3.0"]
    mean = row(text, "as the paper compares, mean of the points: `sub` over 10 epochs of `none`")[1]
    assert mean.endswith(" *(+2.95)*") and float(mean.split()[0]) == pytest.approx(5, abs=0.1)

    other = Repository(tmp_path)
    other.sweep("best", BEST)
    other.table(
        "best",
        {
            f"conll03 {arm}": noisy(0.72, range(10), gain)
            for arm, gain in (("none", 0.0), ("best", 0.06))
        },
        (200,),
    )
    assert "with as many steps, at 200" not in other.write(), (
        "without the recipe's other half nothing is told apart"
    )


def test_a_clear_difference_is_claimed_and_a_small_one_is_not(repository: Repository) -> None:
    text = (repository.docs / "results.md").read_text()
    short = text[text.index("## In short") : text.index("## How to read")]
    helps, rest = short.split("**How much is extra training:**")

    assert (
        "CoNLL-03: `sub` over `none`, at 200 sentences, +3.0" in helps
        and "**It hurts:** In none of them." in short
    )
    assert (
        re.search(r"`duplicate` [+]0\.\d at", text) is None
    )  # of the other arms only those that are shown are named
    assert "training longer and nothing else" in rest.lower()


def test_an_arm_of_the_same_config_is_taken_from_another_table(repository: Repository) -> None:
    text = (repository.docs / "results.md").read_text()
    section = text[text.index("## Longer training alone") :]

    assert row(section, "`none epochs=10`")[1] == "5"
    assert "Runs with the same config are taken from conll03-main: `none epochs=10`." in section
    assert "--reuse results/conll03-main.csv`" in section


def test_what_was_not_measured_is_said(repository: Repository) -> None:
    text = (repository.docs / "results.md").read_text()
    command = (
        "seqmix sweep experiments/brand-new.toml --data DATA --out sweeps/brand-new --workers 16"
    )

    assert f"## Something new\n\nnot measured yet: `{command}`" in text
    assert "**Not measured yet, or only begun:** `brand-new`." in text
    assert "Seeds are missing: `sub` 9 of 10. Not measured yet: `label`." in text


def test_a_new_sweep_file_gets_a_section_without_being_told(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    repository.sweep("brand-new", SETTINGS)
    repository.table(
        "brand-new",
        {
            "none": noisy(0.7, range(5)),
            "sub alpha=2": noisy(0.7, range(5), 0.01),
            "sub alpha=4": {7: 0.6},
        },
    )

    text = repository.write()

    assert row(text, "`sub alpha=2`", "| over step-matched")[1] == "5"
    assert row(text, "`sub alpha=4`", "| arm |")[1:3] == [
        "1",
        "60.0",
    ]  # one seed has no interval, and no partner
    assert "| `sub alpha=4` |" not in text[text.index("| over step-matched") :]


@pytest.mark.parametrize(
    "arms", [{"sub": {0: 0.7}}, {"none": {0: 0.7}}, {"none": {0: 0.7}, "sub": {1: 0.7}}]
)
def test_an_experiment_without_a_pair_has_its_table_only(
    tmp_path: Path, arms: Mapping[str, Heights]
) -> None:
    repository = Repository(tmp_path)
    repository.sweep("conll03-main", MAIN)
    repository.table("conll03-main", arms)

    text = repository.write()

    assert row(text, f"`{next(iter(arms))}`", "| arm |")[1:3] == ["1", "70.0"]
    assert "in none of 0 comparisons" in text.lower() and not (repository.docs / "img").exists()


def test_nothing_is_concluded_from_two_seeds(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    repository.sweep("conll03-main", MAIN)
    repository.table(
        "conll03-main", {"none": noisy(0.7, range(2)), "sub": noisy(0.7, range(2), 0.1)}
    )

    text = repository.write()

    assert (
        "nothing is concluded" in text
        and "Not measured yet, or only begun:** `conll03-main`" in text
    )
    assert row(text, "`sub`", "| arm |")[1] == "2" and "Wilcoxon p = " not in text


def test_trials_are_listed_with_their_means_and_seeds(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    rows = [
        "trial,recipe,data,seed,dev_f1",
        "1,plain,conll03,100,70.0",
        "1,plain,conll03,101,72.0",
        "1,better,wnut17,100,90.5",
    ]
    (repository.results / "tried.csv").write_text("\n".join(rows) + "\n")

    text = repository.write()

    assert row(text, "plain")[1:] == ["71.0 (2)", "", ""] and row(text, "better")[1:] == [
        "",
        "90.5 (1)",
        "",
    ]


LEVERS = """title = "Levers at 200 sentences, CoNLL-03"
data = "conll03"
seeds = [100, 101, 102, 103, 104]
[set]
"loop.rounds" = 0
"training.min_steps" = 300
[arms."none"]
"augment.variant" = "none"
[arms."adapted"]
"augment.variant" = "none"
"adapt.epochs" = 6
[arms."adapted + sub"]
"adapt.epochs" = 6
[arms."adapted + sub + CRF"]
"adapt.epochs" = 6
"tagger.head" = "crf"
"""
BEST = """title = "The best recipe at 200 sentences"
data = "conll03"
seeds = 10
[set]
"loop.rounds" = 0
[arms."conll03 none"]
"augment.variant" = "none"
[arms."conll03 best"]
"augment.variant" = "best"
[arms."conll03 none + CRF"]
"augment.variant" = "none"
"tagger.head" = "crf"
[arms."conll03 best + CRF"]
"augment.variant" = "best"
"tagger.head" = "crf"
"""


def test_levers_are_read_on_dev_against_plain_training_and_against_the_same_without_the_last_one(
    tmp_path: Path,
) -> None:
    repository, seeds = Repository(tmp_path), range(100, 105)
    repository.sweep("levers", LEVERS)
    arms = {"none": 0.70, "adapted": 0.75, "adapted + sub": 0.74, "adapted + sub + CRF": 0.76}
    repository.table(
        "levers", {name: dict.fromkeys(seeds, height) for name, height in arms.items()}, (200,)
    )

    text = repository.write()

    assert row(text, "`none`")[1:] == ["5", "71.0 ± 0.0", "", "", "", "", ""], (
        "dev, which the made-up tables have 1 above test"
    )
    assert row(text, "`adapted`")[3:] == ["+5.0 (+5.0 to +5.0)", "5 of 5", "", "", ""]
    assert row(text, "`adapted + sub`")[3:] == [
        "+4.0 (+4.0 to +4.0)",
        "5 of 5",
        "−1.0 (−1.0 to −1.0)",
        "0 of 5",
        "`adapted`",
    ]
    assert row(text, "`adapted + sub + CRF`")[5:] == [
        "+2.0 (+2.0 to +2.0)",
        "5 of 5",
        "`adapted + sub`",
    ]
    assert (
        "Added to another lever: −1.0 (`adapted + sub`) to +2.0" in text
        and "`adapted` +5.0 (+5.0 to +5.0)" in text
    )
    assert (repository.docs / "img" / "results-levers.png").exists()


def test_the_recipe_with_another_head_is_compared_with_plain_training_with_that_head(
    tmp_path: Path,
) -> None:
    repository, ten = Repository(tmp_path), range(10)
    repository.sweep("best", BEST)
    arms = {"none": 0.0, "best": 0.06, "none + CRF": 0.02, "best + CRF": 0.07}
    repository.table(
        "best", {f"conll03 {name}": noisy(0.72, ten, gain) for name, gain in arms.items()}, (200,)
    )

    text = repository.write()

    assert re.search(
        r"With a CRF head it is 79\.\d ± \d\.\d, \+5\.\d .* over `none` with one and \+1\.\d .* over `best`: shown; the far goal",
        text,
    )
    assert [
        row(text, f"CoNLL-03 | `best{head}` over `none{head}`")[4] for head in ("", " + CRF")
    ] == ["10 of 10"] * 2


DEVICES = """title = "Here & there"
data = "conll03"
seeds = 10
[set]
"loop.rounds" = 0
"augment.variant" = "none"
"tagger.device" = "cpu"
[arms."conll03 none"]
preset = "conll03"
[arms."webpage none"]
data = "webpage"
preset = "webpage"
"""


def test_what_a_cpu_ran_is_said_and_compared_with_what_it_ran_too(tmp_path: Path) -> None:
    repository, ten = Repository(tmp_path), range(10)
    repository.sweep("conll03-main", MAIN + '[arms."best"]\n"augment.variant" = "best"\n')
    repository.sweep("webpage-main", MAIN.replace("conll03", "webpage"))
    repository.sweep("devices", DEVICES)
    best = {seed: 0.75 if seed < 6 else 0.1 for seed in ten}
    repository.table(
        "conll03-main",
        {"none": dict.fromkeys(ten, 0.70), "label": noisy(0.71, ten), "best": best},
        cpu=[("best", s) for s in range(6)],
    )
    repository.table(
        "webpage-main",
        {"none": dict.fromkeys(ten, 0.50), "sub": noisy(0.5, ten)},
        (85, 145),
        cpu=[("none", 0)],
    )
    cpu = [
        (f"{data} none", seed)
        for data in ("conll03", "webpage")
        for seed in ten
        if (data, seed) != ("webpage", 9)
    ]
    here = {seed: 0.72 + 0.01 * (seed % 2) for seed in ten}
    repository.table(
        "devices", {"conll03 none": here, "webpage none": dict.fromkeys(ten, 0.49)}, (200,), cpu=cpu
    )
    rows = read_results([repository.results / "devices.csv"])
    write_results(
        repository.results / "devices.csv",
        [{**row, "labeled": 85 if row["data"] == "webpage" else 200} for row in rows],
    )

    text = repository.write()
    section = text[text.index("## Here & there") :]

    assert (
        "On a CPU, in float32: 6 of 10 runs of `best`; the others on a GPU, in bf16;" in text
        and "[Here & there](#here--there)" in text
    )
    assert row(section, "CoNLL-03")[1:7] == [
        "200",
        "10",
        "70.0 ± 0.0",
        "72.5 ± 0.4",
        "+2.50 (+2.12 to +2.88)",
        "10 of 10",
    ]
    assert row(section, "WebPage")[1:6] == [
        "85",
        "8",
        "50.0 ± 0.0",
        "49.0 ± 0.0",
        "−1.00 (−1.00 to −1.00)",
    ], "one ran elsewhere, each time"
    assert "`none` is +2.5" in section and "a standard deviation of 0.5" in section
    assert len(re.findall("`best` of the main curves", section)) == 1, "WebPage has none"
    assert re.search(
        r"`best` of the main curves, which ran on a CPU, is \+2\.5 .* 6 of 6 seeds", section
    ), "of the GPU's there is nothing"


def test_a_sweep_that_a_cpu_ran_alone_says_so_and_with_how_many_workers(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    repository.sweep("brand-new", SETTINGS)
    arms = {"none": noisy(0.7, range(5)), "sub alpha=2": noisy(0.7, range(5), 0.01)}
    repository.table("brand-new", arms, cpu=[(arm, seed) for arm in arms for seed in range(5)])
    rows = read_results([repository.results / "brand-new.csv"])
    write_results(repository.results / "brand-new.csv", [{**row, "workers": 2} for row in rows])

    text = repository.write()

    assert (
        "All runs on a CPU, in float32." in text and "--out sweeps/brand-new --workers 2`" in text
    )


def test_runs_of_one_experiment_on_two_corpora_of_one_name_are_refused(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    repository.sweep("brand-new", SETTINGS)
    repository.table(
        "brand-new", {"none": noisy(0.7, range(5)), "sub alpha=2": noisy(0.7, range(5), 0.01)}
    )
    path = repository.results / "brand-new.csv"
    rows = read_results([path])
    write_results(path, [{**row, "data_digest": "a" if row["seed"] else None} for row in rows])
    assert repository.write()
    write_results(path, [{**row, "data_digest": "ab"[row["seed"] == 4]} for row in rows])

    with pytest.raises(
        DataError, match=r"none, seed 4 read other data called .* than another run: b, not a"
    ):
        repository.write()


def test_every_sweep_file_of_this_repository_has_its_section(tmp_path: Path) -> None:
    repository = Repository(tmp_path)

    write_page(ROOT / "experiments", repository.results, repository.docs)

    text = (repository.docs / "results.md").read_text()
    names = {path.stem for path in (ROOT / "experiments").glob("*.toml")} - {"smoke"}
    assert (
        set(re.findall(r"not measured yet: `seqmix sweep experiments/([\w-]+)\.toml ", text))
        == names
    )
    assert "experiments/smoke.toml" not in text


def test_runs_of_another_config_than_the_file_has_are_reported(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    repository.sweep("brand-new", SETTINGS)
    repository.table(
        "brand-new", {"none": noisy(0.7, range(5)), "sub alpha=2": noisy(0.7, range(5), 0.01)}
    )
    repository.sweep(
        "brand-new", SETTINGS.replace('[arms."sub"]', '[arms."sub"]\n"augment.rate" = 0.4')
    )

    assert "5 runs were made with another config than the file has now." in repository.write()


def test_holm_counts_the_arms_of_the_family() -> None:
    clear, unclear = (
        judged({seed: 1.0 + 0.1 * seed for seed in range(10)}),
        judged({seed: (-1.0) ** seed for seed in range(10)}),
    )

    family = corrected({"clear": clear, "unclear": unclear})

    assert family["clear"].holm == pytest.approx((4 / 2**10, 4 / 2**10)) and family["clear"].shown
    assert not family["unclear"].shown and not clear.shown  # what was not corrected is not claimed


def test_too_few_pairs_for_the_correction_are_said_to_show_nothing() -> None:
    six = judged({seed: 5.0 + seed for seed in range(6)})
    alone, among_nine = corrected({"a": six})["a"], corrected({str(i): six for i in range(9)})["0"]

    assert alone.shown and alone.could_show and verdict(alone) == ": shown"
    assert not among_nine.shown and not among_nine.could_show  # 9 × 2/2⁶ = 0.28
    assert verdict(among_nine) == ": 6 pairs, corrected over 9 comparisons, cannot show it"
    assert "none below 0.28); the same sign in every seed have `0` +7.5" in shown_in(
        {"": {"0": among_nine}}
    )


def test_the_summary_corrects_over_all_that_it_chooses_from(tmp_path: Path) -> None:
    repository, six = Repository(tmp_path), range(6)
    for name in ("one", "two"):
        repository.sweep(
            name,
            SETTINGS.replace("[2, 4]", "[2]" if name == "one" else "[4]").replace(
                "seeds = 5", "seeds = 6"
            ),
        )
        arm = "sub alpha=2" if name == "one" else "sub alpha=4"
        repository.table(name, {"none": noisy(0.7, six), arm: noisy(0.7, six, 0.02)})

    short, sections = repository.write().split("## How to read this")

    assert sections.count("over step-matched `none`: shown.") == 2, "alone in its section each is"
    assert "**SeqMix helps:** In none of 4 comparisons" in short and "(smallest p 0.12)" in short, (
        "4 × 2/2⁶"
    )


def test_copies_of_the_data_are_no_family_of_their_own(repository: Repository) -> None:
    cells = row(
        (repository.docs / "results.md").read_text(), "`none at 10 epochs`", "| over step-matched"
    )

    assert cells[5] == "0.002 (0.008)", (
        "2/2¹⁰, the smallest of four: three arms and `sub` over `duplicate`"
    )


def test_a_small_difference_is_negligible_where_its_90_percent_interval_is_within_the_margin() -> (
    None
):
    near, wide = (
        {seed: 0.5 + 0.1 * (-1) ** seed for seed in range(6)},
        {seed: 0.5 + 2.0 * (-1) ** seed for seed in range(6)},
    )

    assert (
        judged(near).negligible and not judged(wide).negligible and not judged({0: 0.0}).negligible
    )


def test_curves_are_compared_by_tokens_over_what_all_pass_through_and_averaged_as_the_paper_does(
    repository: Repository,
) -> None:
    arms = measure_all(repository.experiments, repository.results)["conll03-main"].arms
    dear = type(arms["none"])(
        {
            s: {n: {**r, "tokens": 2 * r["tokens"]} for n, r in run.items()}
            for s, run in arms["none"].runs.items()
        }
    )

    (low, high), height = by_tokens([arms["none"], dear])
    plain, twice = (series.values(height)[3] for series in (arms["none"], dear))

    assert (low, high) == (15 * 400, 15 * 700)
    first = 100 * noisy(0.70, [3])[3]
    assert plain == pytest.approx(first + 7) and twice == pytest.approx(first + 1.5), (
        "550 and 275 sentences, at 2 points a hundred"
    )
    assert arms["none"].values(mean_of(SIZES))[3] == pytest.approx(first + 5)


def test_one_seed_that_makes_the_mean_is_named() -> None:
    assert judged({0: 0.1, 1: -0.2, 2: 5.0}).one_seed == 2
    assert judged({0: 1.0, 1: 1.1, 2: 0.9}).one_seed is None


def test_equal_steps_are_not_equal_sentences() -> None:
    assert seen(200, 80, 32) == 11 * 200 + 3 * 32
    assert seen(240, 80, 32) == 2400
    assert seen(85, 40, 32) == 13 * 85 + 32


def test_runs_from_other_sentences_are_not_paired_across_experiments(
    repository: Repository,
) -> None:
    arms = measure_all(repository.experiments, repository.results)["conll03-main"].arms
    other = {**arms["none"].runs[3]}
    other[200] = {**other[200], "tokens": 1}
    mixed = type(arms["none"])({**arms["none"].runs, 3: other})

    assert sorted(same_sentences(arms["sub"], mixed, 200).runs) == [1, 2, 4, 5, 6, 7, 8, 9]


def test_numbers_are_written_with_their_sign_and_p_with_three_digits() -> None:
    assert [signed(value) for value in (2.14, -0.31, -0.04, float("nan"))] == [
        "+2.1",
        "−0.3",
        "0.0",
        "–",
    ]
    assert [p_value(p) for p in (0.0004, 0.0039, 0.0625, 0.251, 1.0)] == [
        "< 0.001",
        "0.004",
        "0.062",
        "0.25",
        "1",
    ]


@pytest.mark.slow
def test_the_page_is_what_the_results_give(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "results.md").read_text()
    (tmp_path / "results.md").write_text(page)

    write_page(ROOT / "experiments", ROOT / "results", tmp_path)

    assert (tmp_path / "results.md").read_text() == page
    assert {file.name for file in (tmp_path / "img").iterdir()} <= {
        file.name for file in (ROOT / "docs" / "img").iterdir()
    }
