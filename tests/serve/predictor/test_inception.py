"""INCEpTION's requests: real CAS documents in and out, offsets in UTF-16, hostile XML refused."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cassis import Cas, TypeSystem, load_cas_from_xmi, load_typesystem
from lxml import etree
from starlette.testclient import TestClient

from seqmix.app.commands.train.serve import load_model
from seqmix.serve.predictor.app import create_app
from seqmix.serve.predictor.model import ServedModel
from tests.support.predictors import HEADERS, TOKEN

LAYER = "de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity"
SEGMENTATION = "de.tudarmstadt.ukp.dkpro.core.api.segmentation.type"
FLAG = "inception_internal_predicted"
SENTENCES = ["😀 Mary Smith lives in New York .", "𝔘 works in Paris .", "Mary Smith works ."]
HERE = f"/inception/{TOKEN}"


@pytest.fixture(scope="module")
def client(tagger_folder: Path) -> Iterator[TestClient]:
    """A client that sends no token, as INCEpTION does."""
    app = create_app(ServedModel(tagger_folder, load_model), TOKEN)
    with TestClient(app, base_url="http://127.0.0.1:8080") as client:
        yield client


def type_system() -> TypeSystem:
    types = TypeSystem()
    for name in ("Sentence", "Token"):
        types.create_type(f"{SEGMENTATION}.{name}")
    layer = types.create_type(LAYER)
    for name, kind in {"value": "String", FLAG: "Boolean", "value_score": "Double"}.items():
        types.create_feature(layer, name, f"uima.cas.{kind}")
    return types


def document(sentences: list[str] = SENTENCES) -> Cas:
    """A document whose tokens are those between the spaces of its lines."""
    cas = Cas(type_system())
    cas.sofa_string, cas.sofa_mime = "\n".join(sentences), "text/plain"
    at = 0
    for text in sentences:
        cas.add(cas.typesystem.get_type(f"{SEGMENTATION}.Sentence")(begin=at, end=at + len(text)))
        for token in text.split():
            start = (
                at + text.index(token)
                if text.count(token) == 1
                else cas.sofa_string.index(token, at)
            )
            cas.add(
                cas.typesystem.get_type(f"{SEGMENTATION}.Token")(
                    begin=start, end=start + len(token)
                )
            )
        at += len(text) + 1
    return cas


def body(cas: Cas, mode: str = "tokens", **changes: Any) -> dict[str, Any]:
    metadata = {
        "layer": LAYER, "feature": "value", "projectId": 7, "anchoringMode": mode,
        "crossSentence": False, "range": {"begin": 0, "end": 10},
    }  # fmt: skip
    about = {"xmi": cas.to_xmi(), "documentId": 42, "userId": "ada"}
    return {
        "metadata": metadata,
        "document": about,
        "typeSystem": cas.typesystem.to_xml(),
        **changes,
    }


def suggestions(client: TestClient, request: dict[str, Any]) -> list[Any]:
    response = client.post(f"{HERE}/predict", json=request)
    assert response.status_code == 200, response.text
    answer = response.json()
    assert answer.keys() == {"document"}
    cas = load_cas_from_xmi(answer["document"], load_typesystem(request["typeSystem"]))
    return [each for each in cas.select(LAYER) if each[FLAG]]


def refusal(client: TestClient, request: dict[str, Any], status: int = 422) -> str:
    response = client.post(f"{HERE}/predict", json=request)
    assert response.status_code == status, response.text
    return str(response.json()["error"])


def predicted(client: TestClient) -> list[tuple[str, str, float]]:
    """What /predict says of the same tokens."""
    request = {"tokens": [text.split() for text in SENTENCES]}
    predictions = client.post("/predict", json=request, headers=HEADERS).json()["predictions"]
    return [(s["text"], s["label"], s["probability"]) for p in predictions for s in p["spans"]]


def test_the_spans_of_each_sentence_come_back_as_annotations(client: TestClient) -> None:
    annotations = suggestions(client, body(document()))

    triples = [(each.get_covered_text(), each.value, each.value_score) for each in annotations]
    assert triples == predicted(client)
    assert [pair[:2] for pair in triples].count(("Mary Smith", "PER")) == 2


def test_offsets_beyond_the_basic_plane_count_utf_16(client: TestClient) -> None:
    """😀 and 𝔘 are one character in Python and two in UIMA."""
    answer = client.post(f"{HERE}/predict", json=body(document())).json()["document"]

    text = "\n".join(SENTENCES).encode("utf-16-le")
    elements = [e for e in etree.fromstring(answer.encode()) if e.get(FLAG) == "true"]
    places = [(int(e.get("begin")), int(e.get("end"))) for e in elements]
    covered = [text[2 * a : 2 * b].decode("utf-16-le") for a, b in places]
    assert covered == [words for words, _, _ in predicted(client)]
    assert (3, 13) in places and (54, 64) in places  # Mary Smith, twice


def test_what_was_in_the_document_stays(client: TestClient) -> None:
    cas = document()
    cas.add(cas.typesystem.get_type(LAYER)(begin=0, end=1, value="SMILE"))
    request = body(cas)

    answer = client.post(f"{HERE}/predict", json=request).json()["document"]

    after = load_cas_from_xmi(answer, load_typesystem(request["typeSystem"]))
    assert after.sofa_string == cas.sofa_string
    assert [each.value for each in after.select(LAYER) if not each[FLAG]] == ["SMILE"]
    for name in ("Sentence", "Token"):
        assert len(after.select(f"{SEGMENTATION}.{name}")) == len(
            cas.select(f"{SEGMENTATION}.{name}")
        )


def test_a_layer_of_single_tokens_gets_an_annotation_for_each(client: TestClient) -> None:
    annotations = suggestions(client, body(document([SENTENCES[2]]), "singleToken"))

    assert [(each.get_covered_text(), each.value) for each in annotations] == [
        ("Mary", "PER"),
        ("Smith", "PER"),
    ]
    assert "sentences" in refusal(client, body(document(), "sentences"))


def test_a_layer_without_scores_and_a_document_without_sentences_will_do(
    client: TestClient,
) -> None:
    cas = document([SENTENCES[2]])
    request = json.loads(json.dumps(body(cas)).replace("value_score", "value_else"))
    for sentence in cas.select(f"{SEGMENTATION}.Sentence"):
        cas.remove(sentence)
    request["document"]["xmi"] = cas.to_xmi()

    assert [each.value for each in suggestions(client, request)] == ["PER"]
    assert suggestions(client, body(Cas(type_system()))) == []


def test_a_long_document_is_tagged_whole(client: TestClient) -> None:
    assert len(suggestions(client, body(document([SENTENCES[2]] * 2100)))) == 2100


def test_the_token_is_in_the_address(client: TestClient) -> None:
    for name in ("predict", "train"):
        assert client.post(f"/inception/{TOKEN}x/{name}", json={}).status_code == 401
        assert client.post(f"/inception//{name}", json={}).status_code == 401
        assert (
            client.post(f"/inception/{TOKEN}x/{name}", json={}, headers=HEADERS).status_code == 401
        )
    assert TOKEN not in client.get("/metrics", headers=HEADERS).text


def test_metrics_name_its_requests_and_do_not_call_refused_training_an_error(
    tagger_folder: Path,
) -> None:
    app = create_app(ServedModel(tagger_folder, load_model), TOKEN)
    with TestClient(app, base_url="http://127.0.0.1:8080") as client:
        suggestions(client, body(document()))
        client.post(f"{HERE}/train", json={})
        client.post("/inception/wrong/predict", json={})
        lines = client.get("/metrics", headers=HEADERS).text.splitlines()

    assert 'seqmix_requests_total{path="/inception/predict",status="200"} 1' in lines
    assert 'seqmix_requests_total{path="/inception/predict",status="401"} 1' in lines
    assert 'seqmix_requests_total{path="/inception/train",status="501"} 1' in lines
    assert 'seqmix_request_seconds_count{path="/inception/predict"} 1' in lines
    assert "seqmix_errors_total 0" in lines


def test_responses_are_what_the_schema_says(client: TestClient) -> None:
    schemathesis = pytest.importorskip("schemathesis", reason="it reads the schema")
    schema = schemathesis.openapi.from_dict(client.get("/openapi.json", headers=HEADERS).json())
    damaged = {**body(document()), "typeSystem": "<"}

    for name, request in {"predict": body(document()), "train": {}, "predict ": damaged}.items():
        response = client.post(f"{HERE}/{name.strip()}", json=request)
        schema[f"/inception/{{token}}/{name.strip()}"]["POST"].validate_response(response)


def test_training_is_declined_in_words(client: TestClient) -> None:
    response = client.post(f"{HERE}/train", json={"documents": []})

    assert (response.status_code, "Trainable" in response.json()["error"]) == (501, True)


def test_a_layer_or_feature_that_is_not_there_is_named(client: TestClient) -> None:
    request = body(document())

    for key in ("layer", "feature"):
        other = {**request, "metadata": {**request["metadata"], key: "no.such"}}
        assert "no.such" in refusal(client, other)
    no_flag = json.loads(json.dumps(request).replace(FLAG, "else"))
    assert FLAG in refusal(client, no_flag)


BOMB = "<!DOCTYPE x [" + "".join(
    f'<!ENTITY e{i} "{f"&e{i - 1};" * 10 if i else "ha"}">' for i in range(20)
) + "]>"  # fmt: skip
FILE = '<!DOCTYPE x [<!ENTITY e0 SYSTEM "file:///etc/passwd">]>'


@pytest.mark.parametrize("prologue", [BOMB, FILE], ids=["bomb", "file"])
@pytest.mark.parametrize("declared", ['<?xml version="1.0" encoding="UTF-8"?>', "", "  \n"])
@pytest.mark.parametrize("part", ["xmi", "typeSystem"])
def test_entities_are_refused(client: TestClient, prologue: str, declared: str, part: str) -> None:
    request = body(document())
    if part == "xmi":
        root = request["document"]["xmi"].partition("?>")[2]
        request["document"]["xmi"] = declared.strip() + prologue + root.replace("Mary", "&e0;")
    else:
        root = request["typeSystem"].partition("?>")[2]
        request["typeSystem"] = declared.strip() + prologue + root

    assert "entities" in refusal(client, request)


def test_another_encoding_hides_nothing(client: TestClient) -> None:
    """In UTF-7, which some parsers read, an entity needs no angle bracket."""
    request = body(document())
    root = request["document"]["xmi"].partition("?>")[2]
    hidden = '+ADwAIQ-DOCTYPE x [+ADwAIQ-ENTITY e0 "ha">]>'
    request["document"]["xmi"] = f'<?xml version="1.0" encoding="UTF-7"?>{hidden}{root}'

    assert "must be a CAS" in refusal(client, request)


@pytest.mark.parametrize(
    "name", ["x=print('HOSTILE')", "x, y", "a b", "", "__class__", "x:=1", "x\u2028y", "<b>c</b>"]
)
def test_no_name_becomes_code(
    client: TestClient, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """cassis compiles the names of features."""
    request = body(document())
    written = name if name.startswith("<") else name.replace("<", "&lt;")
    request["typeSystem"] = request["typeSystem"].replace("<name>value_score<", f"<name>{written}<")
    assert f"<name>{written}<" in request["typeSystem"]

    assert "not a name" in refusal(client, request)
    assert "HOSTILE" not in "".join(capfd.readouterr())


def _changed(part: str, old: str, new: str) -> dict[str, Any]:
    request = body(document())
    if part == "xmi":
        assert old in request["document"]["xmi"]
        request["document"]["xmi"] = request["document"]["xmi"].replace(old, new, 1)
    else:
        assert old in request["typeSystem"]
        request["typeSystem"] = request["typeSystem"].replace(old, new, 1)
    return request


@pytest.mark.parametrize(
    ("part", "old", "new"),
    [
        ("xmi", "<", "&lt;"),
        ("xmi", 'begin="0"', 'begin="99999999"'),
        ("xmi", 'begin="0"', 'begin="-5"'),
        ("xmi", 'begin="0"', 'begin="nan"'),
        ("xmi", "Sentence", "Nothing"),
        ("xmi", "</xmi:XMI>", "<a>" * 2000),
        ("types", f"<name>{LAYER}</name>", "<name>uima.tcas.Annotation</name>"),
        ("types", "uima.cas.Double", "no.such.Type"),
    ],
)  # fmt: skip
def test_a_damaged_document_is_refused_in_one_line(
    client: TestClient, part: str, old: str, new: str
) -> None:
    start = time.perf_counter()
    message = refusal(client, _changed(part, old, new))

    assert "must be a CAS" in message or "layer" in message
    assert "\n" not in message and len(message) < 1000
    assert time.perf_counter() - start < 10


def test_types_that_are_their_own_ancestors_are_refused(client: TestClient) -> None:
    request = body(document())
    ancestor = f"{SEGMENTATION}.Token</supertypeName>"
    types = request["typeSystem"].replace("uima.tcas.Annotation</supertypeName>", ancestor)

    assert "must be a CAS" in refusal(client, {**request, "typeSystem": types})


@pytest.mark.parametrize(
    "change", [{"document": {}}, {"typeSystem": 5}, {"metadata": None}, {"document": {"xmi": ""}}]
)
def test_a_body_of_another_shape_is_refused(client: TestClient, change: dict[str, Any]) -> None:
    refusal(client, {**body(document()), **change})


def test_too_large_a_body_is_refused(client: TestClient) -> None:
    request = {**body(document()), "typeSystem": " " * (16 * 1024 * 1024)}

    assert "larger" in refusal(client, request, 413)


def test_without_the_extra_the_error_names_it(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cassis", None)

    assert "seqmix[inception]" in refusal(client, body(document()), 501)
