"""The application of the prediction server: what it answers, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from seqmix.app.commands.train.serve import load_model
from seqmix.data.sentence import Sentence
from seqmix.export.hf import export_hf
from seqmix.serve.predictor.app import create_app
from seqmix.serve.predictor.model import ServedModel
from seqmix.serve.web.security import Limits
from seqmix.tagger import Settings, Tagger
from tests.support import tiny
from tests.support.predictors import HEADERS, TOKEN

TEXT = "Mary Smith lives in New York."


@pytest.fixture(scope="module")
def served(tagger_folder: Path) -> ServedModel:
    return ServedModel(tagger_folder, load_model)


@pytest.fixture(scope="module")
def client(served: ServedModel) -> Iterator[TestClient]:
    with _client(served) as client:
        yield client


def _client(served: ServedModel, **options: Any) -> TestClient:
    return TestClient(
        create_app(served, TOKEN, **options),
        base_url="http://127.0.0.1:8080",
        headers=HEADERS,
        raise_server_exceptions=False,
    )


def predict(client: TestClient, **body: Any) -> list[dict[str, Any]]:
    response = client.post("/predict", json=body)
    assert response.status_code == 200, response.text
    return response.json()["predictions"]


def test_a_text_gives_spans_by_characters_and_by_tokens(
    client: TestClient, served: ServedModel
) -> None:
    response = client.post("/predict", json={"text": TEXT}).json()

    (prediction,) = response["predictions"]
    assert response["model"] == served.current.version
    assert prediction["tokens"] == ["Mary", "Smith", "lives", "in", "New", "York", "."]
    person, place = prediction["spans"]
    assert (person["label"], person["text"], place["label"]) == ("PER", "Mary Smith", "LOC")
    assert TEXT[place["start"] : place["end"]] == place["text"] == "New York"
    assert (place["token_start"], place["token_end"]) == (4, 6)
    assert 0 < prediction["probability"] <= min(person["probability"], place["probability"]) <= 1


def test_predictions_are_those_of_the_tagger(client: TestClient, tagger_folder: Path) -> None:
    texts = [" ".join(sentence.tokens) for sentence in tiny.toy()]
    tagger = Tagger.load(tagger_folder, "cpu")
    sentences = [Sentence.from_text(text) for text in texts]

    predictions = predict(client, text=texts, n=3)

    expected = tagger.best_paths(sentences, n=3, by_token=True)
    for sentence, paths, prediction in zip(sentences, expected, predictions, strict=True):
        entities = sentence.with_tags(paths[0].tags).entities()
        assert [(e.label, e.start, e.end) for e in entities] == [
            (span["label"], span["start"], span["end"]) for span in prediction["spans"]
        ]
        probabilities = [prediction, *prediction["alternatives"]]
        assert [p["probability"] for p in probabilities] == pytest.approx(
            [path.probability for path in paths], abs=1e-5
        )


def test_text_or_tokens_one_or_many(client: TestClient) -> None:
    one, many = predict(client, text=TEXT), predict(client, text=[TEXT, "", TEXT])
    tokens = ["Mary", "Smith", "lives", "in", "New", "York", "."]
    (by_tokens,) = predict(client, tokens=tokens)

    assert one == [many[0]] == [many[2]]
    assert many[1] == {"text": "", "tokens": [], "probability": 1.0, "spans": []}
    assert predict(client, tokens=[tokens, ["Ada"]])[0] == by_tokens
    assert by_tokens["text"] == "Mary Smith lives in New York ."
    assert [span["text"] for span in by_tokens["spans"]] == ["Mary Smith", "New York"]
    assert predict(client, text=[]) == []
    assert predict(client, tokens=[]) == predict(client, tokens=[[]]) == [many[1]]


def test_offsets_are_characters_beyond_the_basic_plane_too(client: TestClient) -> None:
    text = "\U0001f600 Lena lives in Oslo ."

    (prediction,) = predict(client, text=text)

    cut = [text[span["start"] : span["end"]] for span in prediction["spans"]]
    assert cut == [span["text"] for span in prediction["spans"]] and cut[-1] == "Oslo"


def test_the_body_of_inference_endpoints_works(client: TestClient) -> None:
    def post(inputs: Any, **parameters: Any) -> Any:
        body = {"inputs": inputs, "parameters": parameters, "options": {"use_cache": False}}
        response = client.post("/", json=body)
        assert response.status_code == 200, response.text
        return response.json()

    person, place = post(TEXT)
    assert (person["entity_group"], person["word"]) == ("PER", "Mary Smith")
    assert TEXT[place["start"] : place["end"]] == place["word"] == "New York"
    assert post([TEXT, "the"]) == [[person, place], []]
    assert post(TEXT, aggregation_strategy="first", ignore_labels=["PER", "O"]) == [place]
    groups = post(TEXT, ignore_labels=[])
    assert [group["entity_group"] for group in groups] == ["PER", "O", "LOC", "O"]
    tokens = post(TEXT, aggregation_strategy="none", stride=8)
    assert [(token["entity"], token["index"]) for token in tokens] == [
        ("B-PER", 1), ("I-PER", 2), ("B-LOC", 5), ("I-LOC", 6)
    ]  # fmt: skip
    assert person["score"] == pytest.approx(np.mean([t["score"] for t in tokens[:2]]), abs=1e-5)


def test_part_of_speech_tags_are_a_span_a_token(tmp_path: Path) -> None:
    sentences = [
        Sentence(s.id, s.tokens, ["NOUN" if t[0].isupper() else "VERB" for t in s.tokens])
        for s in tiny.toy()
    ]
    tagger = Tagger(tiny.write_bert(tmp_path / "bert"), "linear", Settings(steps=2), "cpu")
    tagger.fit(sentences, np.random.default_rng(0)).save(tmp_path / "pos")

    with _client(ServedModel(tmp_path / "pos", load_model)) as client:
        (prediction,) = predict(client, tokens=["Ada", "left", "Oslo"])
        labels = client.get("/health").json()["labels"]

    assert [span["text"] for span in prediction["spans"]] == ["Ada", "left", "Oslo"]
    assert labels == ["NOUN", "VERB"]


def test_a_model_of_another_library_can_be_served(
    client: TestClient, tagger_folder: Path, tmp_path: Path
) -> None:
    tagger = Tagger.load(tagger_folder, "cpu")
    export_hf(tagger, tmp_path / "hf")
    texts = [" ".join(sentence.tokens) for sentence in tiny.toy(8)]

    served = ServedModel(tmp_path / "hf", lambda path: load_model(Path(f"hf:{path}")))
    with _client(served) as external:
        theirs = predict(external, text=texts, n=2)

    for ours, other in zip(predict(client, text=texts), theirs, strict=True):
        assert [s["text"] for s in other["spans"]] == [s["text"] for s in ours["spans"]]
    assert not any("alternatives" in each for each in theirs)


WRONG = (
    ("{", "not JSON"),
    ("5", "dictionary"),
    ("[]", "dictionary"),
    ("{}", "text: Field required"),
    ('{"text": null}', "text: "),
    ('{"text": [5]}', "text.0: "),
    ('{"text": {"a": 1}}', "text: "),
    ('{"tokens": "Ada left"}', "tokens: "),
    ('{"tokens": [[1]]}', "tokens.0.0: "),
    ('{"tokens": [["a"], "b"]}', "tokens.1: "),
    ('{"tokens": [""]}', "tokens.0: "),
    ('{"text": "a", "tokens": ["a"]}', "text: "),
    ('{"text": "a", "n": NaN}', "n: "),
    ('{"text": "a", "n": Infinity}', "n: "),
    ('{"text": "a", "n": 0}', "n: "),
    ('{"text": "a", "n": 11}', "n: "),
    ('{"text": "a", "n": "1"}', "n: "),
    ('{"text": "a", "more": 1}', "more: "),
    ('{"text": "\\ud800"}', "unicode"),
    ('{"tokens": ["\\udfff"]}', "unicode"),
    (json.dumps({"text": "a" * 20_001}), "20000"),
    (json.dumps({"tokens": ["a"] * 10_001}), "10000"),
    (json.dumps({"text": ["a"] * 1001}), "1000"),
    ('{"tokens": [' + "1," * 900_000 + "1]}", "tokens.0: "),
)


@pytest.mark.parametrize(("body", "message"), WRONG, ids=[body[:30] for body, _ in WRONG])
def test_a_wrong_body_is_a_422_that_says_where(client: TestClient, body: str, message: str) -> None:
    headers = {"Content-Type": "application/json"}
    response = client.post("/predict", content=body, headers=headers)

    assert response.status_code == 422, response.text
    assert message in response.json()["error"]


def test_a_deeply_nested_body_is_refused(client: TestClient) -> None:
    body = '{"text": ' + "[" * 50_000 + "]" * 50_000 + "}"
    response = client.post("/predict", content=body, headers={"Content-Type": "application/json"})
    assert response.status_code in (400, 422) and response.json()["error"]


def test_strangers_large_bodies_and_other_types_are_refused(client: TestClient) -> None:
    assert client.get("/health", headers={"Authorization": "Bearer " + "x" * 20}).status_code == 401
    refused = client.post("/predict", headers={"Authorization": ""}, json={"text": TEXT})
    assert refused.status_code == 401 and "seqmix serve" in refused.json()["error"]
    assert client.post("/predict", content="text=a").status_code == 415
    large = client.post("/predict", json={"text": ["a" * 15_000] * 200})
    assert large.status_code == 413
    site = {"Origin": "http://evil.example", "Content-Type": "application/json"}
    assert client.post("/predict", headers=site, content="{}").status_code == 403
    assert (client.get("/predict").status_code, client.get("/nothing").status_code) == (405, 404)


def test_every_response_has_the_security_headers_and_any_host_is_accepted(
    client: TestClient,
) -> None:
    for path in ("/health", "/nothing"):
        response = client.get(path, headers={"Host": "ner.example:80"})
        assert response.status_code in (200, 404)
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert "default-src 'none'" in response.headers["Content-Security-Policy"]


def test_requests_beyond_the_rate_get_429(served: ServedModel) -> None:
    with _client(served, limits=Limits(rate=0.5, burst=3)) as client:
        statuses = [client.get("/health").status_code for _ in range(5)]
    assert statuses == [200] * 3 + [429] * 2


def test_a_full_queue_says_when_to_come_back(served: ServedModel) -> None:
    with _client(served, most=2) as client:
        response = client.post("/predict", json={"text": ["a", "b", "c"]})

        assert response.status_code == 503
        assert int(response.headers["Retry-After"]) >= 1
        assert "at most 2" in response.json()["error"]
        assert len(predict(client, text=["a", "b"])) == 2
        assert "seqmix_errors_total 1\n" in client.get("/metrics").text


def test_a_sentence_of_ten_thousand_tokens_is_tagged(client: TestClient) -> None:
    tokens = ["Lena", "left", "Oslo", "."] * 2500

    (prediction,) = predict(client, tokens=tokens)

    assert len(prediction["tokens"]) == 10_000 and prediction["spans"][0]["text"] == "Lena"


def test_metrics_count_what_happened(served: ServedModel) -> None:
    with _client(served) as client:
        predict(client, text=["Ada left", "Bo left", "the"])
        client.post("/predict", json={"text": 5})
        client.get("/../../etc/passwd")
        response = client.get("/metrics")

    values = dict(
        line.rsplit(" ", 1) for line in response.text.splitlines() if not line.startswith("#")
    )
    assert response.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert values['seqmix_requests_total{path="/predict",status="200"}'] == "1"
    assert values['seqmix_requests_total{path="/predict",status="422"}'] == "1"
    assert values['seqmix_requests_total{path="other",status="404"}'] == "1"
    assert values["seqmix_sentences_total"] == "3"
    assert values['seqmix_request_seconds_bucket{path="/predict",le="+Inf"}'] == "1"
    assert values['seqmix_request_seconds_count{path="/predict"}'] == "1"
    assert float(values['seqmix_request_seconds_sum{path="/predict"}']) > 0
    assert values['seqmix_batch_sentences_bucket{le="1"}'] == "0"
    assert values['seqmix_batch_sentences_bucket{le="4"}'] == "1"
    assert values[f'seqmix_model_info{{version="{served.current.version}"}}'] == "1"


def test_responses_are_what_the_schema_says(client: TestClient) -> None:
    schemathesis = pytest.importorskip("schemathesis", reason="it reads the schema")
    schema = schemathesis.openapi.from_dict(client.get("/openapi.json").json())

    def conforms(path: str, method: str, **options: Any) -> None:
        response = client.request(method, path, **options)
        operation = schema[path][method]
        operation.validate_response(response)

    for body in ({"text": TEXT}, {"text": [TEXT] * 2, "n": 3}, {"tokens": ["Ada"]}, {"text": 5}):
        conforms("/predict", "POST", json=body)
    for strategy in ("none", "simple"):
        parameters = {"aggregation_strategy": strategy}
        conforms("/", "POST", json={"inputs": TEXT, "parameters": parameters})
    conforms("/", "POST", json={"inputs": [TEXT, TEXT]})
    conforms("/health", "GET")
    inception = {f"/inception/{{token}}/{name}" for name in ("predict", "train")}
    assert set(schema.raw_schema["paths"]) == {"/", "/predict", "/health", "/metrics"} | inception
