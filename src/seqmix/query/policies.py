"""The query policies by name. A new policy is one function and one line here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from seqmix.errors import ConfigError
from seqmix.query.committee import BALD, qbc
from seqmix.query.diversity import Badge, CoreSet, Diverse, KMeans, random_scores
from seqmix.query.history import fluctuation
from seqmix.query.part import even
from seqmix.query.selection import Budget, WithoutEntity
from seqmix.query.spec import Policy, PolicySpec
from seqmix.query.templates import Apart
from seqmix.query.uncertainty import (
    Reweighted,
    Uncertainty,
    closeness,
    entropies,
    lc,
    least_confidence_sum,
    margin,
    mnlp,
    shortfalls,
    surprisals,
    tag_count,
    token_entropy,
)

_SQUARE = 300  # sentences that a policy orders whose work grows with the square of them

POLICIES: Mapping[str, PolicySpec] = {
    "random": PolicySpec(random_scores, tokens=even),
    "lc": PolicySpec(lc, needs=frozenset({"crf"})),
    "lc_prime": PolicySpec(Uncertainty(least_confidence_sum), tokens=shortfalls),
    "nte": PolicySpec(Uncertainty(token_entropy), tokens=entropies),
    "qbc": PolicySpec(qbc, needs=frozenset({"committee"})),
    "mnlp": PolicySpec(mnlp, tokens=surprisals),
    "margin": PolicySpec(Uncertainty(margin), tokens=closeness),
    "bald": PolicySpec(BALD()),
    "tag_count": PolicySpec(tag_count),
    "reweighted": PolicySpec(Reweighted(), needs=frozenset({"labels"})),
    "fluctuation": PolicySpec(fluctuation, needs=frozenset({"history"})),
    "kmeans": PolicySpec(selector=KMeans(), most=_SQUARE),
    "coreset": PolicySpec(selector=CoreSet(), most=1000),
    "badge": PolicySpec(selector=Badge(), most=_SQUARE),
}
FIRST = POLICIES["kmeans"]  # spreads over a pool before there are labels: it needs embeddings only


def policy_spec(policy: Policy) -> PolicySpec:
    """Return the policy of that name; a function (view, n, rng) -> ids is a policy too."""
    if isinstance(policy, str):
        return POLICIES[policy_name(policy)]
    return policy if isinstance(policy, PolicySpec) else PolicySpec(selector=policy)


def policy_name(name: str) -> str:
    """Return the name of a policy that exists."""
    if name not in POLICIES:
        raise ConfigError(f"there is no policy {name!r}; there are {', '.join(POLICIES)}")
    return name


def check_part(policy: Policy) -> None:
    """Refuse a policy that cannot say which part of a sentence to ask for."""
    if policy_spec(policy).tokens is None:
        able = [name for name, spec in POLICIES.items() if spec.tokens is not None]
        named = policy if isinstance(policy, str) else "one that scores whole sentences"
        raise ConfigError(
            f"asking for a part of a sentence needs a policy that scores each token by itself: "
            f"{', '.join(able)}; got {named}"
        )


def combined(
    policy: Policy,
    diverse: bool = False,
    without_entity: float = 0.0,
    tokens: int | None = None,
    apart: int = 0,
) -> PolicySpec:
    """Return a policy that spreads over the pool and its templates, with a quota and a budget."""
    spec = policy_spec(policy)
    if diverse:
        spec = replace(spec, score=None, selector=Diverse(spec), most=_SQUARE)
    if apart > 1:
        spec = replace(spec, score=None, selector=Apart(spec, apart))
    if without_entity > 0:
        spec = replace(spec, score=None, selector=WithoutEntity(spec, without_entity))
    return spec if tokens is None else replace(spec, score=None, selector=Budget(spec, tokens))
