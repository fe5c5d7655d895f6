"""The head noun of a definition: "… was a Norwegian footballer" -> footballer."""

from __future__ import annotations

import re

NO_PLURAL = frozenset({"series", "species", "news", "politics"})
NOUN_PHRASE_ENDS = frozenset({  # beside participles in -ed
    "in", "of", "from", "that", "who", "which", "by", "at", "for", "on", "and", "or", "to", "with",
    "near", "based", "written", "born", "between", "within", "about", "under", "as", "it", "its",
    "his", "her", "their", "the", "a", "an", "used", "found", "known", "commonly", "also",
    "consisting", "containing", "where", "when", "after", "before", "during", "into", "per", "via",
    "but", "while", "such", "through", "since", "until", "than", "along", "made", "built",
    "playing", "set", "held", "owned", "starring", "featuring", "named", "serving", "covering",
    "including"
})  # fmt: skip
_DEFINITION = re.compile(
    r"\b(?:is|was|are|were)\s+(?:(?:an?|the|(?:one|any) of the)\s+)?(.*)", re.S
)
_BRACKETS = re.compile(r"\([^()]*\)")
_WORD_OR_STOP = re.compile(r"[A-Za-z][A-Za-z'\-]*|[.,;:()\"]")


def head_noun(opening: str) -> str | None:
    """Return the noun that defines the subject, in the singular; None for a name or no noun."""
    for _ in range(2):  # nested brackets
        opening = _BRACKETS.sub("", opening)
    definition = _DEFINITION.search(opening[:500])
    phrase: list[str] = []
    for word in _WORD_OR_STOP.findall(definition[1][:160]) if definition else ():
        if not word[0].isalpha() or _ends_noun_phrase(word.lower()) or len(phrase) == 10:
            break
        phrase.append(word)
    if not phrase or phrase[-1][0].isupper() or phrase[-1].endswith("'s"):
        return None
    return _singular(phrase[-1].lower())


def _ends_noun_phrase(word: str) -> bool:
    return word in NOUN_PHRASE_ENDS or (word.endswith("ed") and len(word) > 5)


def _singular(noun: str) -> str:
    if noun in NO_PLURAL or not noun.endswith("s") or noun.endswith(("ss", "us", "is")):
        return noun
    return noun[:-3] + "y" if noun.endswith("ies") and len(noun) > 5 else noun[:-1]
