"""A tiny trained tagger for the whole session."""

from __future__ import annotations

import pytest

import seqmix
from seqmix.starter import load_encoder
from tests.support import tiny


@pytest.fixture(scope="session")
def encoder(tmp_path_factory) -> str:
    """An encoder with the head that reads text."""
    folder = tmp_path_factory.mktemp("encoders")
    model, tokenizer = load_encoder(tiny.write_bert(folder / "bare"), masked_lm=True)
    model.save_pretrained(folder / "bert")
    tokenizer.save_pretrained(folder / "bert")
    return str(folder / "bert")


@pytest.fixture(scope="session")
def trained(encoder) -> seqmix.Tagger:
    settings = seqmix.Settings(steps=90, lr=3e-3)
    return seqmix.Tagger(encoder, settings=settings).fit(tiny.toy(), seed=1)
