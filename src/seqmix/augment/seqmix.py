"""SeqMix (Algorithm 2): pair, mix, discriminate, until there are N sentences."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np
from pydantic import SkipValidation

from seqmix.augment.acceptance import Candidate, Judging
from seqmix.augment.discriminator import Perplexity
from seqmix.augment.mixing import Mixed, mix, rewritten
from seqmix.augment.pairing import Pair, Pairing, default_cap
from seqmix.augment.score_range import ScoreRange
from seqmix.augment.settings import Mixing, base_of
from seqmix.augment.table import Table, encoder_table
from seqmix.data.augmented import Augmentation, Augmented, Lineage
from seqmix.data.scheme import is_legal
from seqmix.data.sentence import Sentence
from seqmix.data.tagset import OUTSIDE
from seqmix.protocols import Discriminator
from seqmix.settings import settings

_VISITS = 15  # pairs looked at for each sentence asked for, when they have to be mixed again: the released code's figure


@settings
class SeqMix(Mixing):
    """Mix pairs of labeled sentences into new ones: `SeqMix(variant="sub").augment(sentences, n, rng)`.

    Table and discriminator are the starter's unless given; `score_range=None` accepts everything.
    """

    table: SkipValidation[Table | None] = None
    """The words that can come out, with their embeddings."""
    discriminator: SkipValidation[Discriminator | None] = None
    """What scores sentences."""
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
        """Up to n new sentences with their lineage; fewer only with a reason, never one twice, never one unchanged."""
        groups = self.pairing.groups(sentences)
        if n < 1 or not groups:
            return Augmentation((), n, self._why_none(sentences) if n > 0 else None)
        table = (self.table or encoder_table()).spelled(self.alphabet | characters(sentences))
        judge = self.discriminator or (
            Perplexity(base=base_of(self.variant)) if self.limits is not None else None
        )
        cap = self.max_uses or default_cap(n, groups)
        uses: Counter[int] = Counter()
        seen = {sentence.tokens for sentence in sentences}
        outputs: list[Augmented] = []
        rejected: list[Augmented] = []
        counts: Counter[str] = Counter()
        seed = int(rng.integers(2**62))
        judging = Judging(judge, self._limits(sentences, judge))
        most = (
            _VISITS * n if self.weight is None else 0
        )  # a fixed λ would give the same sentences again
        waves = _Waves(
            self.pairing,
            sentences,
            uses,
            cap,
            1 if self.variant == "whole" else 2,
            rng,
            table,
            most,
        )
        while len(outputs) < n and (
            wave := waves.draw(_wave_size(n - len(outputs), len(outputs), counts["scored"]))
        ):
            counts["pairs"] += len(wave)
            weights = [self._weight(pair, seed, waves.visit) for pair in wave]
            mixed = mix(sentences, wave, weights, table, self.keep_case)
            candidates = list(self._candidates(sentences, mixed, waves.visit))
            legal = [candidate for candidate in candidates if candidate.legal]
            fresh = [candidate for candidate in legal if candidate.sentence.tokens not in seen]
            counts["illegal tags"] += len(candidates) - len(legal)
            counts["repeated"] += len(legal) - len(fresh)
            for candidate, score in zip(fresh, judging.scores(fresh), strict=True):
                if len(outputs) == n:
                    break
                counts["scored"] += 1
                lineage = (
                    replace(candidate.lineage, score=score, base=str(judge.base))
                    if judge is not None
                    else candidate.lineage
                )
                if not judging.keeps(candidate, score):
                    counts["out of range"] += 1
                    if self.trace:
                        rejected.append(Augmented(candidate.sentence, lineage, kept=False))
                elif candidate.sentence.tokens in seen:
                    counts["repeated"] += 1
                elif max(uses[place] for place in candidate.places) >= cap:
                    counts["parent used up"] += 1
                else:
                    seen.add(candidate.sentence.tokens)
                    uses.update(candidate.places)
                    outputs.append(Augmented(candidate.sentence, lineage))
        reason = (
            None
            if len(outputs) == n
            else f"no pair is left ({_told(counts)}); loosen density, score range or max_uses for more"
        )
        return Augmentation(tuple(outputs), n, reason, tuple(rejected), dict(counts))

    def _weight(self, pair: Pair, seed: int, visit: int = 0) -> float:
        """λ of a pair on a visit. subtle: from a generator of the pair's own, so that it does not depend on the size of the waves."""
        if self.weight is not None:
            return self.weight
        place = [
            seed,
            *(
                number
                for stretch in pair
                for number in (stretch.parent, stretch.start, stretch.end)
            ),
        ]
        return float(
            np.random.default_rng([*place, visit] if visit else place).beta(self.alpha, self.alpha)
        )

    def _limits(
        self, sentences: Sequence[Sentence], judge: Discriminator | None
    ) -> ScoreRange | None:
        if self.limits is None or judge is None or not self.limits.quantiles:
            return self.limits
        return self.limits.in_scores(judge.scores([s for s in sentences if s.tokens]).tolist())

    def _candidates(
        self, sentences: Sequence[Sentence], mixed: Sequence[Mixed], visit: int
    ) -> Iterator[Candidate]:
        """Both parents of each pair rewritten; whole-sequence gives one candidate, since both would be the same."""
        again = f".{visit + 1}" if visit else ""
        for one in mixed:
            ids = tuple(sentences[stretch.parent].id for stretch in one.pair)
            windows = tuple((stretch.start, stretch.end) for stretch in one.pair)
            spelled = ",".join(
                f"{id}[{start}:{end}]" for id, (start, end) in zip(ids, windows, strict=True)
            )
            for into, stretch in enumerate(one.pair[: 1 if self.variant == "whole" else 2]):
                parent = sentences[stretch.parent]
                new = rewritten(
                    parent,
                    stretch,
                    one,
                    f"{self.variant}({spelled})#{into + 1}{again}",
                    self.keep_case,
                )
                lineage = Lineage(
                    self.variant, ids, windows, into, one.weight, distances=one.distances
                )
                legal = _legal(new) or not _legal(parent)
                yield Candidate(
                    new, lineage, (one.pair[0].parent, one.pair[1].parent), parent, legal
                )

    def _why_none(self, sentences: Sequence[Sentence]) -> str:
        """Why there is nothing to pair, in words."""
        labeled = [s for s in sentences if s.labeled]
        if len({s.tokens for s in labeled}) < 2:
            return "a pair needs two different labeled sentences"
        if not any(row is not None and row != OUTSIDE for s in labeled for row in s.tags):
            return "no token has a valid tag (all are O), so there is nothing to mix"
        if (
            self.variant != "whole"
            and self.windows == "fixed"
            and max(len(s) for s in labeled) < self.window
        ):
            return f"no sentence has {self.window} tokens, the length of a window; lower window"
        same = {
            "whole": "of the same length",
            "sub": "with such a window",
            "label": "with windows of the same tags",
        }[self.variant]
        return (
            f"no two sentences {same} reach the density {self.density:g}; lower density or window"
        )


class _Waves:
    """Pairs a wave at a time. A parent in the wave counts as served until the wave is judged, so that few are scored in vain."""

    def __init__(
        self,
        rule: Pairing,
        sentences: Sequence[Sentence],
        uses: Counter[int],
        cap: int,
        each: int,
        rng: np.random.Generator,
        table: Table,
        most: int,
    ) -> None:
        self.visit = 0  # how often all pairs were given before
        self._drawn, self._most = 0, most
        self._held: Counter[int] = Counter()
        self._given: set[Pair] = set()
        self._uses, self._cap, self._each = uses, cap, each
        self._restart: Callable[[], Iterator[Pair]] = lambda: rule.pairs(
            sentences, self._free, self._given, rng, table.vector
        )
        self._source = self._restart()

    def draw(self, size: int) -> list[Pair]:
        """Up to `size` pairs that were not given on this visit; every pair once, then all again until `most` were drawn."""
        self._held.clear()
        wave = self._take(size)
        if not wave:  # parents held back by the last wave are free again: look once more
            self._source = self._restart()
            wave = self._take(size)
        if not wave and self._drawn < self._most:
            self.visit += 1
            self._given.clear()
            self._source = self._restart()
            wave = self._take(size)
        return wave

    def _take(self, size: int) -> list[Pair]:
        wave = []
        for pair in islice(
            self._source, min(size, max(0, self._most - self._drawn)) if self.visit else size
        ):
            self._held.update({stretch.parent: self._each for stretch in pair})
            wave.append(pair)
        self._drawn += len(wave)
        return wave

    def _free(self, parent: int) -> bool:
        return self._uses[parent] + self._held[parent] < self._cap


def characters(sentences: Iterable[Sentence]) -> frozenset[str]:
    """All that the tokens are written with."""
    return frozenset(
        letter for sentence in sentences for token in sentence.tokens for letter in token
    )


def _legal(sentence: Sentence) -> bool:
    return is_legal([str(tag) if tag is not None else OUTSIDE for tag in sentence.hardened().tags])


def _wave_size(missing: int, accepted: int, scored: int) -> int:
    """How many pairs to mix next: what is missing over the acceptance rate so far, so that few are scored beyond N."""
    rate = (accepted + 1) / (scored + 2)
    return max(1, min(4096, math.ceil(missing / max(rate, 0.02) / 2)))


def _told(counts: Counter[str]) -> str:
    return ", ".join(f"{n} {what}" for what, n in sorted(counts.items())) or "none to begin with"
