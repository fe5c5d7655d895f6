"""What a Label Studio project asks its annotators to label: which control tag, which text, which labels.

    <View>
      <Labels name="label" toName="text"><Label value="PER"/><Label value="LOC"/></Labels>
      <Text name="text" value="$text"/>
    </View>

The configuration comes over the network, so it is read by a parser that takes no DTD and no entities.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from xml.parsers import expat

from seqmix.data.tagset import OUTSIDE, TagSet
from seqmix.errors import DataError

_LIMIT = 1 << 20  # characters


@dataclass(frozen=True)
class Labeling:
    """The control tag whose labels are spans of a text, and the field of a task's data that holds the text."""

    control: str  # the name of <Labels>
    object: str  # the name of <Text>
    key: str  # the text is task["data"][key]
    types: tuple[str, ...]

    @property
    def tag_set(self) -> TagSet:
        """BIO over the labels."""
        return TagSet.ordered(
            [OUTSIDE, *(f"{prefix}-{type}" for type in self.types for prefix in "BI")]
        )


@dataclass
class _Elements:
    labels: list[dict[str, str]] = field(default_factory=list)  # attributes of each <Labels>
    types: list[list[str]] = field(default_factory=list)  # the labels inside each of them
    texts: dict[str, dict[str, str]] = field(
        default_factory=dict
    )  # attributes of each <Text> by its name


def parse_labeling(xml: str) -> Labeling:
    """The first <Labels> on a <Text>; a configuration without them is refused with what was expected."""
    found = _elements(xml)
    for attributes, types in zip(found.labels, found.types, strict=True):
        text = next(
            (
                found.texts[name]
                for name in attributes.get("toname", "").split(",")
                if name in found.texts
            ),
            None,
        )
        if text is None or not types or not attributes.get("name"):
            continue
        key = re.fullmatch(r"\$([^\s.$\[\]]+)", text.get("value", ""))
        if key is None:
            raise DataError(
                'expected <Text> to take its text from the task, as in value="$text"',
                text=text.get("value", ""),
            )
        if text.get("valuetype", "text").lower() != "text":
            raise DataError(
                'expected the text itself in the task, not valueType="url": nothing is fetched from the network'
            )
        return Labeling(attributes["name"], text["name"], key[1], tuple(dict.fromkeys(types)))
    raise DataError(
        'expected a labeling configuration with <Labels name="…" toName="…"> and labels in it, on a <Text name="…" value="$…">'
    )


def _elements(xml: str) -> _Elements:
    """Names of tags and attributes count in any case, as Label Studio reads them."""
    found, inside = _Elements(), [False]

    def start(name: str, attributes: dict[str, str]) -> None:
        own = {key.lower(): value for key, value in attributes.items()}
        inside.append(inside[-1] or name.lower() == "labels")
        if name.lower() == "labels":
            found.labels.append(own)
            found.types.append([])
        elif name.lower() == "label" and inside[-1]:
            type = (
                own.get("alias") or own.get("value") or ""
            )  # an alias is what Label Studio writes into results
            found.types[-1] += [type] if type.strip() else []
        elif name.lower() == "text" and own.get("name"):
            found.texts[own["name"]] = own

    def end(name: str) -> None:
        inside.pop()

    def refuse(*_: object) -> None:
        raise DataError(
            "expected a labeling configuration without a DTD and without entities of its own"
        )

    if len(xml) > _LIMIT:
        raise DataError(
            f"expected a labeling configuration of at most {_LIMIT} characters; this one has {len(xml)}"
        )
    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = parser.SkippedEntityHandler = refuse
    try:
        parser.Parse(xml, True)
    except (expat.ExpatError, UnicodeEncodeError) as error:
        why = (
            expat.ErrorString(error.code)
            if isinstance(error, expat.ExpatError)
            else "half of a surrogate pair"
        )
        raise DataError(f"expected a labeling configuration in XML ({why})", text=xml) from error
    return found
