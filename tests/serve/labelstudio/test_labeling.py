"""What is read out of a labeling configuration, and what is refused."""

from __future__ import annotations

import pytest

from seqmix.data.sentence import Sentence
from seqmix.errors import DataError
from seqmix.serve.labelstudio.labeling import Labeling, parse_labeling
from seqmix.serve.labelstudio.tasks import results

LABELS = '<Labels name="label" toName="text"><Label value="PER"/><Label value="LOC"/></Labels>'
TEXT = '<Text name="text" value="$text"/>'


def test_the_first_labels_on_a_text_count() -> None:
    other = '<Choices name="mood" toName="text"><Choice value="fine"/></Choices>'
    boxes = '<Labels name="boxes" toName="img"><Label value="CAT"/></Labels>'
    image = f'<Image name="img" value="$img"/>{boxes}'
    inner = f"<View className='x'>{LABELS}</View>"
    nested = f"<View><Header value='&lt;'/>{other}{image}{inner}{TEXT}</View>"

    assert parse_labeling(nested) == Labeling("label", "text", "text", ("PER", "LOC"))


def test_names_of_tags_count_in_any_case_and_an_alias_is_the_label() -> None:
    found = parse_labeling(
        '<view><TEXT NAME="t" value="$body"/><labels name="n" toname="x,t">'
        '<label value="Person" alias="P"/></labels></view>'
    )

    assert found == Labeling("n", "t", "body", ("P",))


def test_labels_are_tags_without_white_space() -> None:
    labels = LABELS.replace("PER", "Home  Town")

    assert parse_labeling(f"<View>{labels}{TEXT}</View>").tags == {
        "Home  Town": "Home__Town",
        "LOC": "LOC",
    }


@pytest.mark.parametrize(
    ("xml", "match"),
    [
        ("", "in XML"),
        ("<View>", "in XML"),
        ("{}", "in XML"),
        ("<View>\ud800</View>", "surrogate"),
        ("<View/>", "<Labels"),
        (f"<View>{LABELS}</View>", "<Labels"),
        (f"<View>{TEXT}<Label value='PER'/></View>", "<Labels"),
        (f'<View>{TEXT}<Labels name="label" toName="text"/></View>', "<Labels"),
        (f"<View>{LABELS.replace('Labels', 'HyperTextLabels')}{TEXT}</View>", "<Labels"),
        (f"<View>{LABELS}{TEXT.replace('$text', 'always the same')}</View>", "from the task"),
        (
            "<View>" + LABELS + TEXT.replace("/>", ' valueType="url"/>') + "</View>",
            "nothing is fetched",
        ),
        ("<View>" + " " * (1 << 20) + "</View>", "at most"),
        ('<!DOCTYPE v [<!ENTITY a "x">]><View>&a;</View>', "without a DTD"),
        ('<!DOCTYPE v SYSTEM "http://127.0.0.1:1/x.dtd"><View/>', "without a DTD"),
        ('<!DOCTYPE v [<!ENTITY % a SYSTEM "file:///etc/passwd"> %a;]><View/>', "without a DTD"),
        ("<View>&undefined;</View>", "in XML"),
        (f"<View>{LABELS.replace('PER', 'B-PER')}{TEXT}</View>", "without B-"),
        (f"<View>{LABELS.replace('PER', 'L C').replace('LOC', 'L_C')}{TEXT}</View>", "twice"),
    ],
)
def test_anything_else_is_refused_with_what_was_expected(xml: str, match: str) -> None:
    with pytest.raises(DataError, match=match) as caught:
        parse_labeling(xml)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_endless_entities_cost_nothing() -> None:
    laughs = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 20))

    with pytest.raises(DataError, match="without a DTD"):
        parse_labeling(f'<!DOCTYPE v [<!ENTITY a0 "ha">{laughs}]><View>&a19;</View>')


def test_a_suggested_region_ends_where_its_last_token_does() -> None:
    sentence = Sentence.from_text("🚀 Ada de la Cruz met Bo Li .", "t:1")
    spans = [
        {"start": 1, "end": 5, "tag": "PER", "confidence": 0.9},
        {"start": 6, "end": 8, "tag": "PER", "confidence": 0.8},
        {"start": 0, "end": 1, "tag": "GONE", "confidence": 0.8},
    ]
    found = results(sentence, spans, Labeling("label", "text", "text", ("PER",)))

    assert [(one["value"]["start"], one["value"]["end"]) for one in found] == [(2, 16), (21, 26)]
    assert [one["value"]["text"] for one in found] == ["Ada de la Cruz", "Bo Li"]
