"""Where sentences end in raw text, by rules for many languages.

A sentence ends at . ! ? … and their like in other scripts, with the quotes and brackets that close
behind them, if white space follows and then no small letter. A full stop behind a title (Dr.), an
initial (J.) or an abbreviation with full stops inside (z.B., U.S.) ends a sentence only if the next
word often begins sentences. Chinese and Japanese need no space; an empty line always ends one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_END = re.compile(
    r"(?P<wide>[。！？｡]+(?:[”’」』）】\"')\]]+(?![ぁ-ん])|(?![”’」』）】\"')\]])))"
    r"|(?P<mark>[.!?…‽؟۔।॥։።]+)[”’»\"')\]}]*(?=\s)"
    r"|(?P<gap>(?<=\S)[^\S\n]*\n\s*?\n)"
)
_WORD = re.compile(r"[^\s(\[{\"'“„«‘]+$")
_AFTER = re.compile(r"\s*[^\s,;:)\]}»”’\"'%]")  # not what continues a sentence or closes it
_NEXT = re.compile(r"[\s\"'“”„«»‘’(\[¿¡*•–—-]*(\w+)")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NEVER = _words(  # these stand before a name, a number or an example
    "mr mrs ms dr prof st rev hon gen col lt sgt capt maj gov sen rep pres supt messrs mme mlle "
    "ext fr hr dipl ing mag sr sra srta dra don vs cf fig figs no nos nr vol pp eq eqs sec ch chap "
    "art ed eds al approx ca bzw bspw evtl ggf inkl vgl sog geb gest str tel abb tab kap bd hl "
    "av núm pág págs vid jan feb mar apr jun jul aug sep sept oct okt nov dec dez mt ft op viz "
    "resp eg ie"
)
_MAYBE = _words("etc inc ltd co corp jr bros usw ua uvm ff ave blvd rd dept univ ph.d m.a b.a")
_STARTERS = _words(  # words that often begin a sentence, and seldom follow an abbreviation
    "the a an he she it they we you i this that these those there his her its their our my in "
    "on at as but and or so if when while after before however what who how why where for with "
    "from by to not no der die das ein eine er sie es wir ihr ich man dies diese dieser im am "
    "auf aber und oder wenn als nach vor mit von zu bei für doch le la les un une il elle nous "
    "vous ils elles ce cette ces mais et dans en pour avec el los las una yo él ella ellos "
    "ellas este esta pero y con por para"
)
_MONTHS = _words(
    "januar februar märz april mai juni juli august september oktober november dezember "
    "jahrhundert februari maart augustus"
)


def sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each sentence starts and ends, without the white space around it.

    >>> text = "Dr. Ada left. She was late!"
    >>> [text[a:b] for a, b in sentence_spans(text)]
    ['Dr. Ada left.', 'She was late!']
    """
    start = 0
    for match in _END.finditer(text):
        if match["mark"] is None or _ends(text, start, match):
            yield from _stripped(text, start, match.end())
            start = match.end()
    yield from _stripped(text, start, len(text))


def _stripped(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    content = text[start:end]
    if stripped := content.strip():
        first = start + content.index(stripped)
        yield first, first + len(stripped)


def _ends(text: str, start: int, match: re.Match[str]) -> bool:
    """Whether a mark with white space behind it ends the sentence that began at `start`."""
    following = _NEXT.match(text, match.end())
    if following is None:
        return _AFTER.match(text, match.end()) is not None
    word = following[1]
    if word[0].islower():
        return False
    if match["mark"] != ".":
        return True
    before = _WORD.search(text, max(start, match.start() - 40), match.start())
    return before is None or not _abbreviates(text, start, before, word)


def _abbreviates(text: str, start: int, before: re.Match[str], following: str) -> bool:
    """Whether a full stop belongs to the word before it and ends no sentence."""
    word = before[0].lower()
    begins = before.start() - start < 20 and not text[start : before.start()].strip()
    starter = following.lower() in _STARTERS and following[0].isupper()
    if word in _NEVER:
        return word != "no" or following[0].isdecimal()
    if word.isdecimal() and len(word) < 3:  # 3. Mai, and the numbers of a list
        return begins or following.lower() in _MONTHS
    if len(word) == 1 and word.isalpha() and before[0].islower():
        return True
    if len(word) == 1 and word.isalpha() and before[0].isupper():
        return begins or not starter or following == "I"
    if word in _MAYBE or ("." in word and all(len(part) < 3 for part in word.split("."))):
        return not starter
    return False
