"""What a Label Studio project labels: which control tag, which text, which labels.

    <View>
      <Labels name="label" toName="text"><Label value="PER"/><Label value="LOC"/></Labels>
      <Text name="text" value="$text"/>
    </View>

The configuration comes over the network, so its parser takes no DTD and no entities.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from xml.parsers import expat

from seqmix.errors import DataError
from seqmix.serve.settings import check_tags

_LIMIT = 1 << 20  # characters


@dataclass(frozen=True)
class Labeling:
    """The control tag whose labels are spans, and the field of a task that holds the text."""

    control: str  # the name of <Labels>
    object: str  # the name of <Text>
    key: str  # the text is task["data"][key]
    labels: tuple[str, ...]

    @property
    def tags(self) -> dict[str, str]:
        """The tag of each label; tags have no white space: `Home Town -> Home_Town`."""
        return {label: _tag(label) for label in self.labels}


@dataclass
class _Elements:
    controls: list[dict[str, str]] = field(default_factory=list)  # attributes of each <Labels>
    labels: list[list[str]] = field(default_factory=list)  # inside each of them
    texts: dict[str, dict[str, str]] = field(default_factory=dict)  # each <Text> by its name


def parse_labeling(xml: str) -> Labeling:
    """Return the first <Labels> on a <Text>; without them the configuration is refused."""
    elements = _elements(xml)
    for attributes, labels in zip(elements.controls, elements.labels, strict=True):
        targets = attributes.get("toname", "").split(",")
        text = next((elements.texts[name] for name in targets if name in elements.texts), None)
        if text is None or not labels or not attributes.get("name"):
            continue
        key = re.fullmatch(r"\$([^\s.$\[\]]+)", text.get("value", ""))
        if key is None:
            raise DataError(
                'expected <Text> to take its text from the task, as in value="$text"',
                text=text.get("value", ""),
            )
        if text.get("valuetype", "text").lower() != "text":
            raise DataError(
                'expected the text itself in the task, not valueType="url": '
                "nothing is fetched from the network"
            )
        labeling = Labeling(attributes["name"], text["name"], key[1], tuple(dict.fromkeys(labels)))
        check_tags(tuple(labeling.tags.values()))
        return labeling
    raise DataError(
        'expected a labeling configuration with <Labels name="…" toName="…"> and labels in it, '
        'on a <Text name="…" value="$…">'
    )


def _tag(label: str) -> str:
    return "".join(c if c.isprintable() and not c.isspace() else "_" for c in label)


def _elements(xml: str) -> _Elements:
    """Read names of tags and attributes in any case, as Label Studio does."""
    elements, inside = _Elements(), [False]

    def start(name: str, attributes: dict[str, str]) -> None:
        lowered = {key.lower(): value for key, value in attributes.items()}
        inside.append(inside[-1] or name.lower() == "labels")
        if name.lower() == "labels":
            elements.controls.append(lowered)
            elements.labels.append([])
        elif name.lower() == "label" and inside[-1]:
            # an alias is what Label Studio writes into results
            label = lowered.get("alias") or lowered.get("value") or ""
            elements.labels[-1] += [label] if label.strip() else []
        elif name.lower() == "text" and lowered.get("name"):
            elements.texts[lowered["name"]] = lowered

    def end(name: str) -> None:
        inside.pop()

    def refuse(*_: object) -> None:
        raise DataError("expected a labeling configuration without a DTD and without entities")

    if len(xml) > _LIMIT:
        raise DataError(
            f"expected a labeling configuration of at most {_LIMIT} characters; got {len(xml)}"
        )
    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = parser.SkippedEntityHandler = refuse
    try:
        parser.Parse(xml, True)
    except (expat.ExpatError, UnicodeEncodeError) as error:
        code = getattr(error, "code", None)
        why = "half of a surrogate pair" if code is None else expat.ErrorString(code)
        raise DataError(f"expected a labeling configuration in XML ({why})", text=xml) from error
    return elements
