"""`seqmix serve` as a process: clients at once, a new model, and a stop that loses nothing."""

from __future__ import annotations

import re
import shutil
import signal
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from seqmix.app.cli import run
from seqmix.app.commands.train.serve import parse_port
from seqmix.errors import ConfigError
from seqmix.tagger import Tagger
from tests.support import tiny
from tests.support.predictors import TOKEN, Running, save_tagger, serving
from tests.support.waiting import until

TEXTS = [" ".join(sentence.tokens) for sentence in tiny.toy()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tagger(tmp_path_factory.mktemp("served") / "ner")


@pytest.fixture(scope="module")
def server(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(folder, tmp_path_factory.mktemp("log") / "log") as running:
        yield running


def predictions(client: httpx.Client, texts: list[str]) -> list[dict[str, Any]]:
    response = client.post("/predict", json={"text": texts})
    assert response.status_code == 200, response.text
    return response.json()["predictions"]


def spans(found: list[dict[str, Any]]) -> list[list[tuple[int, int, str]]]:
    return [[(s["start"], s["end"], s["label"]) for s in each["spans"]] for each in found]


def test_many_clients_get_their_own_answers_and_share_batches(server: Running) -> None:
    with server.client() as client:
        alone = spans(predictions(client, TEXTS))

    def ask(number: int) -> bool:
        with server.client() as client:
            at = [(number + i) % len(TEXTS) for i in range(20)]
            return all(spans(predictions(client, [TEXTS[i]])) == [alone[i]] for i in at)

    with ThreadPoolExecutor(16) as threads:
        assert all(threads.map(ask, range(16)))
    with server.client() as client:
        metrics = client.get("/metrics").text
    batches, sentences = (
        float(re.search(rf"^{name} (\S+)$", metrics, re.M)[1])
        for name in ("seqmix_batch_sentences_count", "seqmix_batch_sentences_sum")
    )
    assert sentences == 320 + len(TEXTS)
    assert batches < 0.8 * sentences, "nothing was tagged together"


def test_the_client_of_hugging_face_works_unchanged(server: Running) -> None:
    hub = pytest.importorskip("huggingface_hub", reason="it is its client that is tried")
    url = f"http://127.0.0.1:{server.port}"
    client = hub.InferenceClient(model=url, token=TOKEN)
    text = "Mary Smith lives in New York ."

    person, place = client.token_classification(text)
    tokens = client.token_classification(text, aggregation_strategy="none")

    assert (person.entity_group, person.word, text[place.start : place.end]) == (
        "PER", "Mary Smith", "New York"
    )  # fmt: skip
    assert [token.entity for token in tokens] == ["B-PER", "I-PER", "B-LOC", "I-LOC"]
    with pytest.raises(hub.errors.HfHubHTTPError, match="401"):
        hub.InferenceClient(model=url, token="hf_" + "x" * 30).token_classification(text)


@pytest.mark.ci
def test_a_changed_model_takes_over_without_a_failed_request_and_sigterm_loses_none(
    folder: Path, tmp_path: Path
) -> None:
    model = Path(shutil.copytree(folder, tmp_path / "ner"))
    tagger = Tagger.load(folder, "cpu")
    tagger.fit(tiny.toy()[:4], np.random.default_rng(1), tagger.tag_set, warm=True)
    with serving(model, tmp_path / "log") as running:
        clients = [_Client(running, keep_alive=bool(number % 4)) for number in range(8)]
        for client in clients:
            client.start()
        until(lambda: all(client.answered > 2 for client in clients))
        tagger.save(model)
        until(lambda: all(len(client.versions) == 2 for client in clients))
        (model / "model.safetensors").write_bytes(b"broken")
        with running.client() as asker:
            until(lambda: asker.get("/health").json()["status"] == "stale")
            assert "checksum" in asker.get("/health").json()["trouble"]
            assert "seqmix_model_stale 1\n" in asker.get("/metrics").text
        running.process.send_signal(signal.SIGTERM)

        assert running.process.wait(60) == 0
        for client in clients:
            client.join(60)

    assert [client.lost for client in clients] == [[]] * len(clients)
    assert all(len(client.versions) == 2 for client in clients)
    assert "Traceback" not in running.log.read_text()
    assert "every request that was accepted is answered" in running.log.read_text()


@pytest.mark.ci
@pytest.mark.skipif(not Path("/proc").exists(), reason="looks for torch in /proc")
def test_an_exported_tagger_is_served_without_torch_and_reloaded(
    folder: Path, tmp_path: Path
) -> None:
    for name in ("onnx", "onnxruntime", "onnxscript"):
        pytest.importorskip(name)
    model = tmp_path / "ner.onnx"
    assert run(["export", str(folder), "--to", "onnx", "--out", str(model)]) == 0
    whole = model.read_bytes()
    expected = [sentence.entities() for sentence in Tagger.load(folder).predict(tiny.toy())]
    with serving(model, tmp_path / "log") as running, running.client() as client:
        response = client.post("/predict", json={"tokens": [s.tokens for s in tiny.toy()]}).json()
        maps = Path(f"/proc/{running.process.pid}/maps").read_text()
        model.write_bytes(whole[: len(whole) // 2])
        until(lambda: client.get("/health").json()["status"] == "stale")
        assert spans(predictions(client, TEXTS[:1])) == [
            [(e.start, e.end, e.label) for e in expected[0]]
        ]
        model.write_bytes(whole)
        until(lambda: client.get("/health").json()["status"] == "ok")

    assert spans(response["predictions"]) == [
        [(e.start, e.end, e.label) for e in entities] for entities in expected
    ]
    assert "onnxruntime" in maps and "libtorch" not in maps


class _Client(threading.Thread):
    """Asks until the server is gone; a request it could send must be answered."""

    def __init__(self, server: Running, keep_alive: bool) -> None:
        super().__init__(daemon=True)
        self.server, self.keep_alive = server, keep_alive
        self.answered, self.versions, self.lost = 0, set[str](), list[str]()

    def run(self) -> None:
        more = {} if self.keep_alive else {"Connection": "close"}
        with self.server.client() as client:
            while True:
                try:
                    response = client.post("/predict", json={"text": TEXTS[:3]}, headers=more)
                except httpx.ConnectError:
                    return  # refused: the server no longer accepts connections
                except httpx.HTTPError as error:
                    self.lost.append(repr(error))
                    return
                if response.status_code != 200 or len(response.json()["predictions"]) != 3:
                    self.lost.append(response.text)
                self.answered += 1
                self.versions.add(response.json()["model"])


def test_the_port_may_have_a_host() -> None:
    assert parse_port("8080") == ("127.0.0.1", 8080)
    assert parse_port("0.0.0.0:80") == ("0.0.0.0", 80)
    assert parse_port("[::1]:80") == ("::1", 80)
    for wrong in ("", "ner", "1:", "8080 ", "-1", "٣", "1234567"):
        with pytest.raises(ConfigError, match="must look like 8080"):
            parse_port(wrong)


def test_what_cannot_be_served_is_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def refused(*arguments: str) -> str:
        assert run(["serve", *arguments]) == 2
        message = capfd.readouterr().err
        assert message.count("\n") == 1
        return message

    assert "is not a tagger" in refused(str(folder / "nothing"), "--port", "0")
    assert "--port must be" in refused(str(folder), "--port", "70000")
    with socket.create_server(("127.0.0.1", 0)) as busy:
        assert "give another --port" in refused(str(folder), "--port", str(busy.getsockname()[1]))
    monkeypatch.setenv("SEQMIX_TOKEN", "short")
    assert "SEQMIX_TOKEN must be" in refused(str(folder), "--port", "0")
