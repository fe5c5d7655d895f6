"""SeqMix (Algorithm 2): pair, mix, discriminate, until there are N sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from pydantic import SkipValidation

from seqmix.augment.acceptance import Acceptance, Candidate, Judging
from seqmix.augment.discriminator import Perplexity
from seqmix.augment.in_context import choose
from seqmix.augment.mixing import MixedPair, like, mix, rewritten
from seqmix.augment.pairing import Pair, Pairing, default_cap
from seqmix.augment.score_range import ScoreRange
from seqmix.augment.settings import Mixing, base_of
from seqmix.augment.table import Table
from seqmix.augment.table_sources import encoder_table
from seqmix.augment.waves import Waves, wave_size
from seqmix.data.augmented import Augmentation, Lineage
from seqmix.data.scheme import is_legal
from seqmix.data.sentence import Sentence
from seqmix.data.spans import OUTSIDE
from seqmix.protocols import Discriminator
from seqmix.settings import settings
from seqmix.starter import STARTER

_VISITS = 15  # pairs per sentence asked for when they are mixed again, as in the released code


@settings
class SeqMix(Mixing):
    """Mix pairs of labeled sentences: `SeqMix(variant="sub").augment(sentences, n, rng)`.

    Table and discriminator are the starter's unless given; `score_range=None` accepts everything.
    """

    table: SkipValidation[Table | None] = None
    """The words that can come out, with their embeddings."""
    discriminator: SkipValidation[Discriminator | None] = None
    """What scores sentences."""
    masked_lm: str = STARTER
    """The encoder that chooses words in context; the table is of its vocabulary."""
    alphabet: frozenset[str] = frozenset()
    """Characters a new word may have beside those of the sentences."""
    trace: bool = False
    """Keep rejected sentences, too."""

    @property
    def pairing(self) -> Pairing:
        """The pairing rule of these settings."""
        return Pairing(self)

    def augment(
        self, sentences: Sequence[Sentence], n: int, rng: np.random.Generator
    ) -> Augmentation:
        """Generate up to n sentences, none twice and none unchanged; fewer only with a reason.

        Args:
            sentences: The parents, all or some of them labeled.
            n: How many to generate.
            rng: The source of all randomness; the same one gives the same sentences.
        """
        groups = self.pairing.groups(sentences)
        if n < 1 or not groups:
            return Augmentation((), n, self._why_none(sentences) if n > 0 else None)
        table = (self.table or encoder_table()).spelled(self.alphabet | characters(sentences))
        judge = self.discriminator
        if judge is None and self.limits is not None:
            judge = Perplexity(base=base_of(self.variant))
        seed = int(rng.integers(2**62))
        accepted = Acceptance(
            n,
            cap=self.max_uses or default_cap(n, groups),
            judging=Judging(judge, self._limits(sentences, judge)),
            seen={sentence.tokens for sentence in sentences},
            trace=self.trace,
        )
        # a fixed λ would give the same sentences when pairs are mixed again
        most = _VISITS * n if self.weight is None else 0
        uses, cap = accepted.uses, accepted.cap
        waves = Waves(self.pairing, sentences, uses, cap, rng, table, most)
        while accepted.missing and (
            wave := waves.draw(
                wave_size(accepted.missing, n - accepted.missing, accepted.counts["scored"])
            )
        ):
            weights = [self._weight(pair, seed, waves.visit) for pair in wave]
            mixed = mix(sentences, wave, weights, table, self.keep_case, self.in_context)
            accepted.counts["pairs"] += len(wave)
            candidates = list(self._candidates(sentences, mixed, waves.visit))
            accepted.take(self._in_context(candidates, mixed, table))
        return accepted.augmentation()

    def _weight(self, pair: Pair, seed: int, visit: int) -> float:
        """Return λ of a pair on a visit.

        subtle: each pair has its own generator, so that λ does not depend on the size of waves.
        """
        if self.weight is not None:
            return self.weight
        key = [seed]
        for stretch in pair:
            key += [stretch.parent, stretch.start, stretch.end]
        generator = np.random.default_rng([*key, visit] if visit else key)
        return float(generator.beta(self.alpha, self.alpha))

    def _limits(
        self, sentences: Sequence[Sentence], judge: Discriminator | None
    ) -> ScoreRange | None:
        if self.limits is None or judge is None or not self.limits.quantiles:
            return self.limits
        return self.limits.in_scores(judge.scores([s for s in sentences if s.tokens]).tolist())

    def _candidates(
        self, sentences: Sequence[Sentence], mixed: Sequence[MixedPair], visit: int
    ) -> Iterator[Candidate]:
        """Rewrite both parents of each pair; with `whole` one, since both would be the same."""
        again = f".{visit + 1}" if visit else ""
        for mixture in mixed:
            ids = tuple(sentences[stretch.parent].id for stretch in mixture.pair)
            windows = tuple((stretch.start, stretch.end) for stretch in mixture.pair)
            pair = ",".join(
                f"{id}[{start}:{end}]" for id, (start, end) in zip(ids, windows, strict=True)
            )
            places = mixture.pair[0].parent, mixture.pair[1].parent
            for into, stretch in enumerate(mixture.pair[: self.pairing.candidates]):
                parent = sentences[stretch.parent]
                id = f"{self.variant}({pair})#{into + 1}{again}"
                new = rewritten(parent, stretch, mixture, id, self.keep_case)
                lineage = Lineage(
                    self.variant, ids, windows, into, mixture.weight, distances=mixture.distances
                )
                legal = _legal(new) or not _legal(parent)
                yield Candidate(new, lineage, places, parent, legal)

    def _in_context(
        self, candidates: list[Candidate], mixed: Sequence[MixedPair], table: Table
    ) -> list[Candidate]:
        """Let a masked LM choose each new word among the nearest, if that is asked for."""
        if not self.in_context:
            return candidates
        choices = [each.choices for each in mixed for _ in range(self.pairing.candidates)]
        words = choose(
            [(c.sentence, c.lineage.windows[c.lineage.into][0]) for c in candidates],
            choices,
            table,
            self.masked_lm,
        )
        return [
            replace(candidate, sentence=with_words(candidate, chosen, self.keep_case))
            for candidate, chosen in zip(candidates, words, strict=True)
        ]

    def _why_none(self, sentences: Sequence[Sentence]) -> str:
        """Return why there is nothing to pair."""
        labeled = [s for s in sentences if s.labeled]
        if len({s.tokens for s in labeled}) < 2:
            return "a pair needs two different labeled sentences"
        if not any(row is not None and row != OUTSIDE for s in labeled for row in s.tags):
            return "no token has a valid tag (all are O), so there is nothing to mix"
        fixed = self.variant != "whole" and self.windows == "fixed"
        if fixed and max(len(s) for s in labeled) < self.window:
            return f"no sentence has {self.window} tokens, the length of a window; lower window"
        same = {
            "whole": "of the same length",
            "sub": "with such a window",
            "label": "with windows of the same tags",
        }[self.variant]
        return (
            f"no two sentences {same} reach the density {self.density:g}; lower density or window"
        )


def characters(sentences: Iterable[Sentence]) -> frozenset[str]:
    """Return all characters of the tokens."""
    return frozenset(
        character for sentence in sentences for token in sentence.tokens for character in token
    )


def with_words(candidate: Candidate, words: Sequence[str], keep_case: bool) -> Sentence:
    """Return the candidate's sentence with other words in its window."""
    start, end = candidate.lineage.windows[candidate.lineage.into]
    if keep_case:
        words = [
            like(new, old)
            for new, old in zip(words, candidate.parent.tokens[start:end], strict=True)
        ]
    tokens = candidate.sentence.tokens
    return replace(candidate.sentence, tokens=(*tokens[:start], *words, *tokens[end:]))


def _legal(sentence: Sentence) -> bool:
    return is_legal([str(tag) if tag is not None else OUTSIDE for tag in sentence.hardened().tags])
