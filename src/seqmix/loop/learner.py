"""The active learner: query, teach, and a tagger that follows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from seqmix.data import formats
from seqmix.data.augmented import Augmentation, Augmented
from seqmix.data.files import lines, replacing
from seqmix.data.overwriting import FolderKind
from seqmix.data.sentence import Sentence
from seqmix.data.tagset import TagSet
from seqmix.errors import ConfigError, RunError
from seqmix.loop.pool import Pool
from seqmix.loop.pool_view import TaggerView
from seqmix.loop.rounds import damaged, read_object
from seqmix.loop.seeds import generator
from seqmix.protocols import Augmenter, Tagger, Trainable
from seqmix.query.part import SentencePart, Window
from seqmix.query.policies import check_part, policy_spec
from seqmix.query.spec import Policy
from seqmix.settings import at

Fit = Callable[[Sequence[Sentence], int | None, np.random.Generator, Tagger | None], Tagger]
Augmenters = Callable[[int], Augmenter | None]  # by round
FORMAT_VERSION = 1
_DATA = ("unlabeled.jsonl", "labeled.jsonl", "generated.jsonl")
_FOLDER = FolderKind("a learner", ("learner.json",), (*_DATA, "model/*"))
REMEMBERED = 4  # rounds of predictions kept for policies that need the history


class ActiveLearner:
    """Choose what to label next, and learn from the answers.

        learner = ActiveLearner(tagger=Tagger(), pool=Pool.of(unlabeled, labeled))
        ids = learner.query(10)
        learner.teach(ids, answers)
        learner.tagger.save("ner")

    The last five arguments are the state of a learner that did all this before.

    Args:
        tagger: A template that is copied for each training and stays as it is, or a function
            (sentences, steps or None, rng, last tagger or None) -> tagger.
        pool: What may be asked for, and what is labeled already.
        policy: A name in `seqmix.POLICIES`, a `PolicySpec`, or a function (view, n, rng) -> ids.
        augmenter: What generates sentences from newly labeled ones, or a function of the round.
        rate: New sentences for each newly labeled one; a list has one number per round.
        seed: The same seed and the same answers give the same choices and taggers.
        steps: A function (sentences) -> optimizer steps, where `tagger` is a function.
        match_steps: Count the sentences that augmentation was asked for even where it gave fewer,
            so that arms take equal steps.
        warm: Train the last tagger further instead of a new one.
        members: The size of a committee.
        part: Ask for a part of each sentence; by default for all of it.
        round: How many batches have been labeled.
        generated: What augmentation has generated so far.
        nominal: How many sentences augmentation was asked for so far.
        history: The tags predicted in the last rounds by sentence id, oldest first.
        trained: The tagger trained on all that is labeled.
    """

    def __init__(
        self,
        *,
        tagger: Trainable | Fit,
        pool: Pool,
        policy: Policy = "nte",
        augmenter: Augmenter | Augmenters | None = None,
        rate: float | Sequence[float] = 0.2,
        seed: int = 0,
        steps: Callable[[int], int | None] | None = None,
        match_steps: bool = True,
        warm: bool = False,
        members: int = 3,
        part: SentencePart | None = None,
        round: int = 0,
        generated: Iterable[Augmented] = (),
        nominal: int = 0,
        history: Mapping[str, Sequence[Sequence[str]]] | None = None,
        trained: Tagger | None = None,
    ) -> None:
        if steps is not None and isinstance(tagger, Trainable):
            raise ConfigError("steps must come with a function as tagger; a Tagger has settings")
        self._template, self._augmenter, self._rate = tagger, augmenter, rate
        self._steps, self._match_steps, self._warm = steps, match_steps, warm
        self._members, self._tagger, self._part = members, trained, part
        if part is not None:
            check_part(policy)
        self.pool, self.policy, self.seed, self.round = pool, policy_spec(policy), seed, round
        self.generated = list(generated)
        self.nominal = nominal  # sentences augmentation was asked for so far
        self.history = {id: [list(tags) for tags in past] for id, past in (history or {}).items()}

    @property
    def tagger(self) -> Tagger:
        """The tagger trained on all that is labeled; trained now if it is not yet."""
        return self.train() if self._tagger is None else self._tagger

    def use(self, tagger: Tagger) -> None:
        """Take a tagger that this learner trained on all that is labeled before it was killed."""
        self._tagger = tagger

    def query(self, n: int) -> list[str]:
        """Return the ids of the n sentences to label next, best first."""
        return list(self.rank(n))

    def rank(self, n: int) -> dict[str, float]:
        """Return the scores of the n sentences to label next by id, best first."""
        return self.ask(n)[0]

    def ask(self, n: int) -> tuple[dict[str, float], dict[str, Window]]:
        """Return what `rank` does, and the tokens to label where only a part is asked for."""
        self.pool.check(n)
        rng = generator(self.seed, self.round + 1, "query")
        view = TaggerView(self.pool, self.tagger, self.committee, self.history, rng)
        scores = self.policy.choose(view, n, rng)
        self.pool.take(list(scores))  # refuses strangers
        if self._part is None:
            return scores, {}
        windows = self._part.windows(view.among(scores), self.policy, rng)
        scores = self._part.within_budget(scores, windows)
        return scores, {id: windows[id] for id in scores}

    def teach(self, ids: Sequence[str], sentences: Sequence[Sentence]) -> Tagger:
        """Take the answers to these ids, generate more from them, and train."""
        self.label(ids, sentences)
        self.augment(sentences)
        return self.train()

    def label(self, ids: Sequence[str], sentences: Sequence[Sentence]) -> None:
        """Take the answers to these ids; the next round begins."""
        self.pool = self.pool.label(ids, sentences)
        self.round += 1

    def asked(self, batch: int) -> int:
        """Return how many sentences augmentation is asked for when `batch` have been labeled."""
        return round(at(self._rate, self.round) * batch)

    def augment(
        self,
        batch: Sequence[Sentence],
        keep: Callable[[list[Augmented]], Iterable[Augmented]] = list,
    ) -> Augmentation:
        """Generate sentences from the newly labeled ones only (Algorithm 1).

        `keep` says which of all that were generated so far are learned from.
        """
        asked = self.asked(len(batch))
        augmenter = self._augmenter
        if augmenter is not None and not hasattr(augmenter, "augment"):
            augmenter = augmenter(self.round)
        rng = generator(self.seed, self.round, "augment")
        augmentation = Augmentation((), 0)
        if augmenter is not None and asked > 0:
            augmentation = augmenter.augment(batch, asked, rng)
        new = [replace(new, sentence=_renamed(new.sentence, self.round)) for new in augmentation]
        self.nominal += asked
        self.generated = list(keep([*self.generated, *new]))
        return augmentation

    def take_generated(self, generated: Iterable[Augmented], asked: int) -> None:
        """Take what an earlier `augment` returned when asked for `asked` sentences."""
        self.nominal += asked
        self.generated += generated

    @property
    def steps(self) -> int | None:
        """Optimizer steps that a training takes now; None leaves them to the tagger's settings."""
        generated = self.nominal if self._match_steps else len(self.generated)
        return None if self._steps is None else self._steps(len(self.pool.labeled) + generated)

    def train(self) -> Tagger:
        """Train on everything labeled and generated so far."""
        rng = generator(self.seed, self.round, "train")
        self._tagger = self._fit(self.training_set, rng, self.warm_start)
        return self._tagger

    @property
    def warm_start(self) -> Tagger | None:
        """The tagger that a training continues from, if it is not to start over."""
        return self._tagger if self._warm else None

    def _fit(
        self, sentences: Sequence[Sentence], rng: np.random.Generator, last: Tagger | None
    ) -> Tagger:
        if not isinstance(self._template, Trainable):
            return self._template(sentences, self.steps, rng, last)
        tag_set = self._template.tag_set or TagSet.of(self.pool.labeled.values())
        same = last is not None and last.tag_set and set(last.tag_set.tags) == set(tag_set.tags)
        if same and isinstance(last, Trainable):
            return last.twin().fit(sentences, rng, tag_set, warm=True)
        return self._template.twin().fit(sentences, rng, tag_set, warm=False)

    @property
    def looks_back(self) -> bool:
        """Whether the policy needs the predictions of earlier rounds."""
        return "history" in self.policy.needs

    def remember(self) -> None:
        """Keep this round's predictions on the pool for a policy that looks back."""
        pool = self.pool.unlabeled
        for id, paths in zip(pool, self.tagger.best_paths(pool.values()), strict=True):
            self.history.setdefault(id, []).append(list(paths[0].tags))
            del self.history[id][:-REMEMBERED]

    def committee(self) -> list[Tagger]:
        """Train members that differ: each has its own seed and bootstrap sample."""
        labeled = self.training_set
        rng = generator(self.seed, self.round, "committee")
        members = []
        for member in rng.spawn(self._members):
            sample = [labeled[i] for i in member.integers(len(labeled), size=len(labeled))]
            members.append(self._fit(sample, member, None))
        return members

    @property
    def training_set(self) -> list[Sentence]:
        """What is learned from: everything labeled and generated so far."""
        return [*self.pool.labeled.values(), *(new.sentence for new in self.generated)]

    def save(self, folder: Path | str) -> None:
        """Write the pool, the labels, what was generated and the tagger; not how to learn."""
        state = {
            "format_version": FORMAT_VERSION,
            "round": self.round,
            "seed": self.seed,
            "nominal": self.nominal,
            "history": self.history,
        }
        with replacing(Path(folder), _FOLDER) as beside:
            formats.write(self.pool.unlabeled.values(), beside / "unlabeled.jsonl", "jsonl-tokens")
            formats.write(self.pool.labeled.values(), beside / "labeled.jsonl", "jsonl-tokens")
            with (beside / "generated.jsonl").open("w", encoding="utf-8", newline="\n") as file:
                file.writelines(
                    json.dumps(new.to_record(), ensure_ascii=False) + "\n" for new in self.generated
                )
            if self._tagger is not None:
                self._tagger.save(beside / "model")
            (beside / "learner.json").write_text(
                json.dumps(state, ensure_ascii=False), encoding="utf-8"
            )

    @classmethod
    def load(
        cls, folder: Path | str, load_tagger: Callable[[Path], Tagger], **arguments: Any
    ) -> ActiveLearner:
        """Return a learner that `save` wrote; the arguments say how it learns, as at first."""
        folder = Path(folder)
        if not (folder / "learner.json").is_file():
            raise RunError(f"{folder} is not a saved learner: it has no learner.json")
        state = read_object(folder / "learner.json")
        if state.get("format_version") != FORMAT_VERSION:
            raise RunError(
                f"{folder} has learner format {state.get('format_version')}; "
                f"this version of seqmix reads {FORMAT_VERSION}"
            )
        state = read_object(folder / "learner.json", seed=int, round=int, nominal=int, history=dict)
        with damaged(folder / "generated.jsonl"):
            generated = [
                Augmented.from_record(json.loads(line))
                for _, line in lines(folder / "generated.jsonl")
            ]
        labeled = list(formats.read(folder / "labeled.jsonl", "jsonl-tokens"))
        pool = Pool(
            {s.id: s for s in formats.read(folder / "unlabeled.jsonl", "jsonl-tokens")},
            {s.id: s for s in labeled},
        )
        model = folder / "model"
        return cls(
            pool=pool,
            seed=state["seed"],
            round=state["round"],
            generated=generated,
            nominal=state["nominal"],
            history=state["history"],
            trained=load_tagger(model) if model.exists() else None,
            **arguments,
        )


def _renamed(sentence: Sentence, round: int) -> Sentence:
    """Return the sentence with an id that no other round gives."""
    return replace(sentence, id=f"r{round}/{sentence.id}")
