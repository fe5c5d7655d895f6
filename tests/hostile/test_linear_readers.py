"""Twice as long a file is twice the work.

Work is counted, not timed, in characters that are copied and in steps that Python takes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from seqmix.data.formats import Options, ace05, brat, charspans
from seqmix.data.formats.charspans import confirmed
from seqmix.data.text import CharSpan
from seqmix.serve.labelstudio.labeling import Labeling
from seqmix.serve.labelstudio.tasks import sentence_of

SOURCES = str(Path(charspans.__file__).parent)


class Counted(str):
    """A text that counts how many of its characters are copied, encoded or searched."""

    __slots__ = ()
    copied = 0

    def __getitem__(self, key: Any) -> Counted:
        actual = str.__getitem__(self, key)
        Counted.copied += len(actual)
        return Counted(actual)

    def encode(self, *given: Any, **more: Any) -> bytes:
        Counted.copied += len(self)
        return str.encode(self, *given, **more)


def copied(read: Callable[[int], object], n: int) -> int:
    """Characters that are copied while n spans are read."""
    Counted.copied = 0
    read(n)
    return Counted.copied


def steps(work: Callable[[], Iterable[object]]) -> int:
    """The instructions of the format readers that run."""
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        if event == "call" and not frame.f_code.co_filename.startswith(SOURCES):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        for _ in work():
            pass
    finally:
        sys.settrace(before)
    return count


def disagreeing(n: int) -> None:
    text, options = Counted("\U0001f680ab " * n), Options(misaligned="expand")
    for number in range(n):
        confirmed(CharSpan(4 * number, 4 * number + 2, "X"), "zz", text, options)
    assert options.counts["misaligned"] == n


def in_units(n: int) -> None:
    text, options = Counted("\U0001f680ab " * n), Options()
    actual = [
        confirmed(CharSpan(5 * number + 2, 5 * number + 4, "X"), "ab", text, options)
        for number in range(n)
    ]
    assert (
        actual[1:3] == [CharSpan(5, 7, "X"), CharSpan(9, 11, "X")]
        and options.counts["UTF-16 offsets"] > n // 2
    )


def claiming_everything(n: int) -> None:
    text, options = Counted("ab c" * n), Options(misaligned="expand")
    for number in range(n):
        assert confirmed(CharSpan(number % 7, 4 * n, "X"), "zz", text, options) is not None


def of_a_task(n: int) -> None:
    text = Counted("\U0001f680ab " * n)
    value = [
        {"start": 5 * number + 2, "end": 5 * number + 4, "text": "ab", "labels": ["X"]}
        for number in range(n)
    ]
    result = [{"type": "labels", "from_name": "label", "value": one} for one in value]
    assert (
        sentence_of(1, {"text": text}, Labeling("label", "text", "text", ("X",)), result)
        is not None
    )


@pytest.mark.parametrize("read", [disagreeing, in_units, claiming_everything, of_a_task])
def test_twice_as_many_spans_copy_twice_as_many_characters(read: Callable[[int], object]) -> None:
    few, many = copied(read, 100), copied(read, 200)

    assert many <= 2.5 * few


@pytest.mark.parametrize("between", ["\n\n", " "])
def test_twice_as_long_an_ace_document_is_twice_the_work(
    between: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = ace05.plain_text
    monkeypatch.setattr(
        ace05, "plain_text", lambda path: (Counted((actual := plain(path))[0]), *actual[1:])
    )

    def document(n: int) -> tuple[int, int]:
        sentence = f"we &amp; they fought{between}"
        length, first = len(sentence), sentence.index("fought")
        (tmp_path / f"{n}.sgm").write_text(f"<DOC><TEXT>{sentence * n}</TEXT></DOC>")
        anchor = (
            '<event TYPE="Conflict" SUBTYPE="Attack"><event_mention><anchor>'
            '<charseq START="{}" END="{}">fought</charseq></anchor>'
        )
        anchors = (
            anchor.format(length * i + first, length * i + first + 5) + "</event_mention></event>"
            for i in range(n)
        )
        (tmp_path / f"{n}.apf.xml").write_text(f"<source_file>{''.join(anchors)}</source_file>")
        Counted.copied = 0
        taken = steps(lambda: ace05.read(tmp_path / f"{n}.sgm", Options()))
        return taken, Counted.copied

    few, many = document(100), document(200)

    assert many[0] <= 2.5 * few[0] and many[1] <= 2.5 * few[1]


def test_twice_as_long_a_brat_document_is_twice_the_work(tmp_path: Path) -> None:
    def document(n: int) -> int:
        (tmp_path / f"{n}.txt").write_text("Lena left\n" * n)
        (tmp_path / f"{n}.ann").write_text(
            "".join(f"T{i}\tPER {10 * i} {10 * i + 4}\tOmar\n" for i in range(n))
        )
        return steps(lambda: brat.read(tmp_path / f"{n}.txt", Options(misaligned="expand")))

    assert document(200) <= 2.5 * document(100)
