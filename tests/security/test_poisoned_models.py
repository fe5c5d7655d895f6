"""Model folders as a stranger might send them: nothing in them runs, and nobody is asked."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import GPT2Config, GPT2LMHeadModel

from seqmix.data.sentence import Sentence
from seqmix.errors import ModelError, SeqMixError
from seqmix.starter import load_encoder, load_language_model
from seqmix.starter.guarded import GROWTH, PROBE, refuse_grown
from seqmix.tagger import Tagger
from tests.support import tiny


class Payload:
    """Unpickled, it leaves a file behind."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.mark}",)


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    return tmp_path / "ran"


@pytest.fixture(autouse=True)
def nobody_to_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(prompt: str = "") -> str:
        pytest.fail(f"somebody was asked: {prompt}")

    monkeypatch.setattr("builtins.input", asked)


def encoder(folder: Path) -> Path:
    return Path(tiny.write_bert(folder))


def language_model(folder: Path) -> Path:
    tokenizer = tiny.bert_tokenizer()
    GPT2LMHeadModel(
        GPT2Config(vocab_size=len(tokenizer), n_positions=32, n_embd=8, n_layer=1, n_head=2)
    ).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def tagger(folder: Path) -> Path:
    own = Tagger(tiny.write_bert(folder.with_name("own-encoder")), device="cpu")
    own.fit(tiny.toy(4), np.random.default_rng(0))
    own.save(folder)
    return folder


KINDS: dict[str, tuple[Callable[[Path], Path], Callable[[str], Any]]] = {
    "encoder": (encoder, load_encoder),
    "masked-lm": (encoder, lambda name: load_encoder(name, masked_lm=True)),
    "language model": (language_model, load_language_model),
    "tagger": (tagger, lambda name: Tagger.load(name, "cpu")),
}


def change(file: Path, **changes: Any) -> None:
    known = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps({**known, **changes}))


def pickled(name: str) -> Callable[[Path, Path], None]:
    def poison(folder: Path, mark: Path) -> None:
        torch.save({"weight": Payload(mark)}, folder / name)

    return poison


def instead(name: str) -> Callable[[Path, Path], None]:
    def poison(folder: Path, mark: Path) -> None:
        (folder / "model.safetensors").unlink()
        pickled(name)(folder, mark)

    return poison


def honest_pickle(folder: Path, mark: Path) -> None:
    """Nothing but tensors; it is still a pickle."""
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def under_a_safe_name(folder: Path, mark: Path) -> None:
    (folder / "model.safetensors").write_bytes(pickle.dumps(Payload(mark)))


def by_an_index(folder: Path, mark: Path) -> None:
    """An index of safetensors whose one shard is a pickle."""
    (folder / "model.safetensors").unlink()
    pickled("shard.bin")(folder, mark)
    change(folder / "model.safetensors.index.json", metadata={}, weight_map={"weight": "shard.bin"})


def array_of_objects(folder: Path, mark: Path) -> None:
    np.save(folder / "embeddings.npy", np.array([Payload(mark)], dtype=object), allow_pickle=True)


def code_file(folder: Path, mark: Path) -> None:
    (folder / "evil.py").write_text(f"open({str(mark)!r}, 'w').close()\nclass Evil: pass\n")


def code_of_a_known_kind(folder: Path, mark: Path) -> None:
    code_file(folder, mark)
    change(
        folder / "config.json",
        auto_map=dict.fromkeys(("AutoConfig", "AutoModel", "AutoModelForMaskedLM"), "evil.Evil"),
    )


def code_of_an_unknown_kind(folder: Path, mark: Path) -> None:
    code_of_a_known_kind(folder, mark)
    change(folder / "config.json", model_type="evil")


def code_on_the_hub(folder: Path, mark: Path) -> None:
    change(
        folder / "config.json", model_type="evil", auto_map={"AutoConfig": "evil/repo--evil.Evil"}
    )


def code_of_the_tokenizer(folder: Path, mark: Path) -> None:
    code_file(folder, mark)
    change(
        folder / "tokenizer_config.json",
        tokenizer_class="Evil",
        auto_map={"AutoTokenizer": ["evil.Evil", "evil.Evil"]},
    )


def kernel_on_the_hub(folder: Path, mark: Path) -> None:
    change(
        folder / "config.json",
        attn_implementation="evil/kernel",
        experts_implementation="evil/kernel",
    )


def chat_template(folder: Path, mark: Path) -> None:
    template = (
        "{{ ''.__class__.__mro__[1].__subclasses__() }}"
        "{{ cycler.__init__.__globals__.os.system('touch " + str(mark) + "') }}"
    )
    change(folder / "tokenizer_config.json", chat_template=template)
    (folder / "chat_template.jinja").write_text(template)


def adapter(folder: Path, mark: Path) -> None:
    pickled("adapter_model.bin")(folder, mark)
    change(
        folder / "adapter_config.json",
        peft_type="LORA",
        base_model_name_or_path="evil/base",
        auto_mapping={"parent_library": "evil"},
    )


HARMLESS = [  # what is wrong with them is never looked at
    pickled("pytorch_model.bin"),
    pickled("training_args.bin"),
    array_of_objects,
    code_of_a_known_kind,
    kernel_on_the_hub,
    chat_template,
]
REFUSED = [
    instead("pytorch_model.bin"),
    instead("model.pt"),
    honest_pickle,
    under_a_safe_name,
    by_an_index,
    code_of_an_unknown_kind,
    code_on_the_hub,
]


def unchecked(folder: Path) -> None:
    """A stranger writes the checksums to fit, or none: they guard against damage, not him."""
    described = folder / "tagger.json"
    if described.exists():
        known = json.loads(described.read_text())
        described.write_text(
            json.dumps({key: value for key, value in known.items() if key != "checksums"})
        )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("poison", HARMLESS)
def test_what_lies_beside_the_weights_is_left_alone(
    kind: str, poison: Callable[[Path, Path], None], tmp_path: Path, mark: Path
) -> None:
    make, load = KINDS[kind]
    folder = make(tmp_path / "model")
    poison(folder, mark)
    unchecked(folder)

    load(str(folder))

    assert not mark.exists()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("poison", REFUSED)
def test_a_folder_that_cannot_be_read_without_running_it_is_refused_in_one_line(
    kind: str, poison: Callable[[Path, Path], None], tmp_path: Path, mark: Path
) -> None:
    make, load = KINDS[kind]
    folder = make(tmp_path / "model")
    poison(folder, mark)
    unchecked(folder)

    with pytest.raises(ModelError) as refused:
        load(str(folder))

    assert "\n" not in str(refused.value)
    assert not mark.exists()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("poison", [code_of_the_tokenizer, adapter])
def test_code_for_the_tokenizer_or_an_adapter_is_not_run_either(
    kind: str, poison: Callable[[Path, Path], None], tmp_path: Path, mark: Path
) -> None:
    make, load = KINDS[kind]
    folder = make(tmp_path / "model")
    poison(folder, mark)
    unchecked(folder)

    try:
        load(str(folder))
    except SeqMixError as error:
        assert "\n" not in str(error)
    assert not mark.exists()


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tagger(tmp_path_factory.mktemp("trained") / "model")


@pytest.fixture
def folder(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "model"))


@pytest.mark.parametrize(
    "name",
    [
        "{outside}",
        "../outside",
        "./config.json",
        ".",
        "..",
        "",
        "fifo",
        "no-such-file",
        "a/../config.json",
    ],
)
def test_checksums_name_files_of_the_folder_and_nothing_else_is_opened(
    name: str, folder: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    os.mkfifo(outside)  # who opens it waits for ever, as with /dev/zero
    if name == "fifo":
        change(folder / "tagger.json", checksums={"link": 0})
        (folder / "link").symlink_to("/dev/zero")
    else:
        change(folder / "tagger.json", checksums={name.format(outside=outside): 0})

    with pytest.raises(ModelError, match=r"there is no such file in it|must be a file") as refused:
        Tagger.load(folder, "cpu")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("checksums", [[], "x", 3, None])
def test_checksums_that_are_no_object_are_refused_in_one_line(checksums: Any, folder: Path) -> None:
    change(folder / "tagger.json", checksums=checksums)

    with pytest.raises(ModelError, match="checksums must be an object"):
        Tagger.load(folder, "cpu")


def test_a_tagger_that_is_a_link_to_a_device_is_refused(folder: Path) -> None:
    (folder / "tagger.json").unlink()
    (folder / "tagger.json").symlink_to("/dev/zero")

    with pytest.raises(ModelError, match=r"'tagger.json' in it must be a file"):
        Tagger.load(folder, "cpu")


def test_a_tokenizer_that_panics_is_one_line(folder: Path) -> None:
    split = {
        "type": "Split",
        "pattern": {"Regex": "(a|a|aa)+$"},
        "behavior": "Isolated",
        "invert": False,
    }
    change(folder / "tokenizer.json", pre_tokenizer=split, normalizer=None)
    unchecked(folder)
    poisoned = Tagger.load(folder, "cpu")

    with pytest.raises(ModelError, match="tokenizer cannot cut this text") as refused:
        list(poisoned.predict([Sentence("1", ("a" * 60 + "b",))]))
    assert "\n" not in str(refused.value)


TENFOLD = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 10}
BOMBS: dict[str, dict[str, Any]] = {
    "ten times ten": {"normalizer": {"type": "Sequence", "normalizers": [TENFOLD] * 10}},
    "inside each other": {
        "normalizer": {
            "type": "Sequence",
            "normalizers": [TENFOLD, {"type": "Sequence", "normalizers": [TENFOLD] * 9}],
        }
    },
    "where nothing stands": {
        "normalizer": {
            "type": "Sequence",
            "normalizers": [{"type": "Replace", "pattern": {"Regex": "(?=a)"}, "content": "a"}]
            * 30,
        }
    },
    "bytes of bytes": {
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {
                    "type": "ByteLevel",
                    "add_prefix_space": True,
                    "trim_offsets": True,
                    "use_regex": False,
                }
            ]
            * 30,
        }
    },
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bomb", BOMBS)
def test_a_tokenizer_that_multiplies_a_text_is_refused_before_it_is_asked(
    kind: str, bomb: str, tmp_path: Path
) -> None:
    make, load = KINDS[kind]
    poisoned = make(tmp_path / "model")
    change(poisoned / "tokenizer.json", **BOMBS[bomb])
    unchecked(poisoned)

    with pytest.raises(ModelError, match="times as long; at most 200 times is accepted") as refused:
        load(str(poisoned))
    assert "\n" not in str(refused.value)


def test_a_tokenizer_that_makes_too_much_of_a_few_letters_is_refused(tmp_path: Path) -> None:
    """One whose steps do not say what they make of a letter, as a compiled table of characters."""
    refuse_grown("a" * GROWTH * len(PROBE))

    with pytest.raises(ModelError, match="tokenizer makes 19001 characters of 95"):
        refuse_grown("a" * (GROWTH * len(PROBE) + 1))


def test_a_gguf_file_that_is_a_pickle_is_refused(tmp_path: Path, mark: Path) -> None:
    pytest.importorskip("gguf", reason="GGUF needs the extra gguf")
    (tmp_path / "lm").mkdir()
    (tmp_path / "lm" / "model.gguf").write_bytes(pickle.dumps(Payload(mark)))

    with pytest.raises(ModelError):
        load_language_model(str(tmp_path / "lm"))
    assert not mark.exists()


def test_the_payload_would_run_if_it_were_unpickled(mark: Path) -> None:
    """Else the tests above would prove nothing."""
    pickle.loads(pickle.dumps(Payload(mark)))

    assert mark.exists()
