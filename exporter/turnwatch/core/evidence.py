"""What a result is remembered by: digests of its text, never the text."""

from __future__ import annotations

import hashlib
import re
from typing import Final, final

from turnwatch.core.result_text import ENVELOPES, result_text

# Of text at hand Python's own hash, which is keyed by the process: digests of two processes cannot be compared, and
# nobody outside can make two texts of one digest. Sources that publish digests give text.
Digest = str | int

# Normalising and shingling cost time in proportion to the text, so a longer text is compared by its exact digest only.
_MAX_FUZZY_CHARS: Final = 65_536
# Sources that publish digests publish the first 200 characters beside them: what is read from the text itself
# (emptiness, error words, digits) is read from no more than that, so that both give the same verdicts.
_HEAD_CHARS: Final = 200
_SIM_MIN_WORDS: Final = 8
SAME_PAGE_BITS: Final = 12


@final
class Evidence:
    """What is known of one result: enough to tell whether two results are the same, nearly the same, or empty.

    Lives as long as its call is being recorded. It may hold the text until then, so that what costs time
    (normalising, simhash) is computed only for calls that repeat; turn state keeps digests only.

    Attributes:
        exact: Digest of the whole text.
        size: Characters of the text; -1 when unknown.
        head: The first characters of the text, as far as known.
        whole: The text, if it is short enough that everybody who knows its head knows all of it.
    """

    __slots__ = ("_bag", "_empty", "_failure", "_normal", "_sim", "_text", "exact", "head", "size", "whole")

    def __init__(self, exact: Digest, head: str, size: int) -> None:
        self.exact = exact
        self.size = size
        self.head = head
        self.whole = head if 0 <= size <= _HEAD_CHARS else None
        self._text: str | None = None
        self._normal: Digest | None = None
        self._sim: int | None = None
        # Asked by the engine of the turn, and again by that of its conversation.
        self._bag: Digest | None = None
        self._empty: bool | None = None
        self._failure: bool | None = None

    @classmethod
    def of(cls, result: object) -> Evidence:
        """Evidence of a result that is at hand: text, bytes, or any object. Never raises."""
        text = result if type(result) is str and not result.startswith(ENVELOPES) else result_text(result)[0]
        evidence = cls(hash(text), text[:_HEAD_CHARS], len(text))
        evidence._text = text
        return evidence

    @classmethod
    def from_digests(
        cls,
        exact: str,
        normal: str | None = None,
        simhash: str | int | None = None,
        *,
        head: str = "",
        length: int | None = None,
    ) -> Evidence:
        """Evidence of a result of which a source gives digests only.

        Args:
            exact: Any digest of the whole text; equal texts must have equal digests.
            normal: Digest of the text after durations, dates, ids and white space are taken out.
            simhash: 64-bit simhash of the normalised text, as a number or in hexadecimal.
            head: The first characters of the text, where the source gives them (200 are read).
            length: Length of the whole text, where the source gives it.
        """
        if length is None:
            length = len(head) if len(head) < _HEAD_CHARS else -1
        evidence = cls(exact, head[:_HEAD_CHARS], length)
        evidence._normal = exact if normal is None else normal
        evidence._sim = int(simhash, 16) if isinstance(simhash, str) else simhash
        return evidence

    @property
    def normal(self) -> Digest:
        """Digest of the normalised text; the exact digest when the text is too long to normalise."""
        if self._normal is None:
            self._fuzzy()
        assert self._normal is not None
        return self._normal

    @property
    def simhash(self) -> int | None:
        """64-bit simhash of the normalised text; None under 8 words or when unknown."""
        if self._normal is None:
            self._fuzzy()
        return self._sim

    @property
    def digitless(self) -> Digest | None:
        """Digest of a short text without its numbers and ids; None if it is longer, has none, or is a table of them."""
        text = self.whole
        if text is None:
            return None
        bare, found = _DIGITS.subn("0", text)
        return hash(bare) if 0 < found <= _MAX_NUMBERS else None

    @property
    def bag(self) -> Digest:
        """Digest of the words of a short text whatever their order; the exact digest of a longer one."""
        if self._bag is None:
            text = self.whole
            self._bag = self.exact if text is None else hash(frozenset(_WORDS.findall(text.lower())))
        return self._bag

    def beyond(self, tool: str, args: object) -> Digest | None:
        """Digest of what a text says beyond the words of its call; None if that is little.

        "Permission denied for write: a.txt" says the same of b.txt.
        """
        said = _WORDS.findall(self.head)
        own = set(_WORDS.findall(f"{tool} {result_text(args)[0]}"[:_MAX_FUZZY_CHARS].replace("\\n", " ")))
        more = [word for word in said if word not in own and not _HAS_DIGIT.search(word)]
        return hash(" ".join(more)) if len(more) >= _MIN_BEYOND else None

    @property
    def empty(self) -> bool:
        """Whether the result says that there is nothing: no text, an empty list, "no results"."""
        if self._empty is None:
            self._empty = self.whole is not None and reads_as_nothing(self.whole)
        return self._empty

    @property
    def silent(self) -> bool:
        """Whether the result is nothing at all, or no more than a word saying that the call worked."""
        return self.whole is not None and _SILENT.fullmatch(self.whole) is not None

    @property
    def pending(self) -> bool:
        """Whether a short result says that something is not done yet: "still running", ``{"state": "queued"}``."""
        text = (self.whole or "").lower()
        return any(stem in text for stem in _STEMS) and _PENDING.search(text) is not None

    @property
    def failure(self) -> bool:
        """Whether the text itself begins by saying that the call failed."""
        if self._failure is None:
            self._failure = _FAILURE.match(self.head) is not None
        return self._failure

    @property
    def exited_badly(self) -> bool:
        """Whether the text says, where it begins or ends, that a command's exit code was not zero."""
        return _EXIT.search(self.head if self._text is None else self.head + self._text[-_HEAD_CHARS:]) is not None

    @property
    def names_unknown_tool(self) -> bool:
        """Whether an error says that the tool itself does not exist."""
        return _UNKNOWN_TOOL.search(self.head) is not None

    def _fuzzy(self) -> None:
        text = self._text
        if text is None or len(text) > _MAX_FUZZY_CHARS:
            self._normal = self.exact
            return
        normal = normalise(text)
        self._normal = hash((normal,))  # never the exact digest of the same text: the engine keeps both in one table
        self._sim = simhash(normal)


def evidence_of(result: object) -> Evidence | None:
    """Evidence of what a tool returned, or None where the object does not show what it holds. Never raises.

    A stream, a response or an object without a repr of its own reads the same whatever is in it; taken for a
    result it would make every repeated call look like one that brought nothing new.
    """
    text, shown = (result, True) if type(result) is str else result_text(result)
    return Evidence.of(text) if shown else None


# What has more than a clock or a counter needs is a table, which is read for its figures.
_MAX_NUMBERS: Final = 8
_HAS_DIGIT: Final = re.compile(r"\d")
_MIN_BEYOND: Final = 2
# Numbers, and ids: words with a digit in them.
_DIGITS: Final = re.compile(r"\w*\d\w*(?:[.,:-]\w*\d\w*)*")


# What differs between two runs of the same command although nothing that matters changed, each after what is no
# part of a word. Read in lower case: beginning with a plain class, the search passes over the inside of words
# quickly, and so do the branches over words that cannot be one of these.
_VOLATILE: Final = re.compile(
    r"""
    \W(?:
    (?P<uuid>[0-9a-f][0-9a-f]{7}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b)
  | \d(?:
        (?P<date>\d{3}-\d\d-\d\d(?:[t\ ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:z|[+-]\d\d:?\d\d)?)?\b
          |\d?/\d{1,2}/\d{2,4}\b)
      | (?P<clock>\d?:\d\d:\d\d(?:[.,]\d+)?\b)
      | (?P<duration>\d*(?:\.\d+)?\ ?(?:ns|us|[µμ]s|ms|s|secs?|seconds?|mins?|minutes?|hours?)\b)
    )
  | (?P<hexadecimal>0x[0-9a-f]+\b|[0-9](?=[0-9]*[a-f])[0-9a-f]{6,}\b|[a-f](?=[a-f]*\d)[0-9a-f]{6,}\b)
  | [jfmasond](?P<day>(?:an|un|ul|eb|ar|ay|pr|ug|ep|ct|ov|ec)(?<=jan|jun|jul|feb|mar|may|apr|aug|sep|oct|nov|dec)
        [a-z]*\ +\d{1,2}(?:,?\ +(?:\d{4}|\d\d:\d\d(?::\d\d)?))?\b)
  | [tv](?P<temporary>(?:mp(?<=tmp)|ar(?<=var)/(?:folders|tmp))/[^\s'":,;)\]]+|mp(?<=tmp)[a-z0-9_]{6,}\b)
  | [delrtuw](?P<timing>(?:uration|lapsed|xecution_?time|atency|un_?time|esponse_?time|ook|otal_(?:time|duration)
        |ptime|all_?time)\w*["']?\ ?[:=]\ ?\d+(?:\.\d+)?\b)
  | [pt](?P<pid>(?:id(?<=pid)|rocess(?<=process)|hread(?<=thread))[ =:#]*\d+\b)
    )
    """,
    re.VERBOSE,
)
_TAGS: Final = {name: f"<{'date' if name == 'day' else name}>" for name in _VOLATILE.groupindex}
_WORDS: Final = re.compile(r"\w+")


def normalise(text: str) -> str:
    """The text without durations, dates, hex, uuids, process ids, temporary paths and differences in white space."""
    text = f" {text}"
    lower = text.lower()
    if len(lower) != len(text):  # the one letter that is two in lower case
        lower = text.replace("\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}", "i").lower()
    pieces: list[str] = []
    start = 0
    for found in _VOLATILE.finditer(lower):
        pieces += (text[start : found.start() + 1], _TAGS[found.lastgroup or ""])
        start = found.end()
    if pieces:
        text = "".join(pieces) + text[start:]
    return " ".join(text.split())


def simhash(text: str) -> int | None:
    """64-bit simhash over the words of a text; None under 8 words."""
    words = _WORDS.findall(text.lower())
    if len(words) < _SIM_MIN_WORDS:
        return None
    # In each lane the number of words that have the bit. Its top bit is set if that is more than half of them.
    above_half = (_sum_of_lanes(words) + (0x8000 - len(words) // 2 - 1) * _ONE_EACH).to_bytes(128, "little")
    return int(above_half[:0:-2].translate(_TOP_BIT), 2)


# 64 counters of 16 bits side by side in one integer: adding a word is one addition.
_LANES: Final = tuple(bytes(byte >> (at // 2) & 1 if at % 2 == 0 else 0 for at in range(16)) for byte in range(256))
_ONE_EACH: Final = int.from_bytes(b"\1\0" * 64, "little")
_TOP_BIT: Final = bytes(ord("1") if byte & 0x80 else ord("0") for byte in range(256))
# Texts share most of their words. Kept under a number, so that no word of a result is kept.
_known: Final[dict[int, int]] = {}
_MAX_KNOWN: Final = 16_384


def _sum_of_lanes(words: list[str]) -> int:
    try:
        return sum(map(_known.__getitem__, map(hash, words)))
    except KeyError:
        pass
    total = 0
    for word in words:
        lanes = _known.get(hash(word))
        if lanes is None:
            digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
            lanes = int.from_bytes(b"".join(map(_LANES.__getitem__, digest)), "little")
            if len(_known) >= _MAX_KNOWN:
                _known.clear()
            _known[hash(word)] = lanes
        total += lanes
    return total


def same_page(one: int | None, other: int | None) -> bool:
    """Whether two simhashes are close enough to be the same page.

    12 bits: on web shopping runs stuck clicks differ by 8 to 13 bits, scrolling by 19 and more.
    """
    return one is not None and other is not None and (one ^ other).bit_count() <= SAME_PAGE_BITS


# A tool that names nothing: markup, brackets and a few words are all that is left.
_MARKUP: Final = re.compile(r"</?[a-z_]+>|[\s\[\]{}()\"'`.,:;!*_-]++", re.IGNORECASE)
_NOTHING: Final = re.compile(
    r"(?:|null|none|nil|undefined|n/a|empty|0|0\s?(?:results?|rows?|matches|items?|hits|records?|files?)(?:\s?found)?"
    r"|(?:there (?:are|were) )?no (?:\w+ ){0,2}(?:results?|rows?|match(?:es)?|matching \w+|items?|hits|records?|files?"
    r"|documents?|data|entries|output)(?: (?:were |was )?(?:found|returned|available|matched|match))?(?: for .*)?"
    r"|nothing(?: (?:was )?found)?|not found|(?:results?|data|items|rows|hits|matches|records|documents) (?:null|none)?"
    r"|empty (?:result|list|set|response)s?(?: set)?)",
    re.IGNORECASE,
)
_NO_MEMBER: Final = re.compile(r"\[\s*\]|\{\s*\}|null|\b0\b")
_EMPTY_MEMBERS: Final = re.compile(r"\{(?:\s*\"[^\"]*\"\s*:\s*(?:\[\s*\]|\{\s*\}|null|0|\"\"|false|true)\s*,?)+\s*\}")


# How every _NOTHING begins, markup passed over. Few other results do, and they are told apart by this alone.
_BEGINS_AS_NOTHING: Final = re.compile(
    rf"(?:{_MARKUP.pattern})*+(?:$|n[iou/]|undef|empty|0|there|result|data|items|rows|hits|match|record|document)",
    re.IGNORECASE,
)


def reads_as_nothing(text: str) -> bool:
    """Whether a short text says that there is nothing."""
    if _BEGINS_AS_NOTHING.match(text) and _NOTHING.fullmatch(_MARKUP.sub(" ", text).strip()):
        return True
    return "{" in text and _EMPTY_MEMBERS.fullmatch(text.strip()) is not None and _NO_MEMBER.search(text) is not None


# A list, be it empty, is an answer.
_SILENT: Final = re.compile(
    r"[^\w\[]*(?:(?:null|none|nil|undefined|ok|okay|done|true|success(?:ful(?:ly)?)?|succeeded|completed?|finished|200|0"
    r"|status|result|message|response|data|code|error|stored|saved|sent|added|updated|created|deleted|removed|recorded"
    r"|noted|accepted|acknowledged|received|posted|applied|processed|executed|submitted|delivered|written)\b[^\w\[]*)*",
    re.IGNORECASE,
)
# Of work that goes on by itself. An order that is pending is a fact, which asking again does not change.
_AT_WORK: Final = (
    r"(?:running|queued|in[ _-]?progress|progressing|starting|building|deploying|training|provisioning|initiali[sz]ing"
    r"|loading)\b"
)
_PENDING: Final = re.compile(
    rf"\b(?:(?:status|state|phase)\b[\W_]{{1,6}}(?:is\s)?{_AT_WORK}|still[ _-]{_AT_WORK}|process (?:is )?running\b"
    r"|not yet (?:ready|finished|completed?|done|available)\b|no new output\b"
    r"|(?:done|completed?|finished|ready)\"\s*:\s*false\b)|^\W*waiting[ _-]for"
)
# Whatever matches has one of these, and most results have none and need no closer look.
_STEMS: Final = ("ing", "queued", "progress", "not yet", "no new", "false")
_FAILURE: Final = re.compile(
    r"\W{0,3}+(?:\w++(?:(?<=error)|(?<=exception))|traceback \(most|failed to |failure\b|fatal:|nothing happens"
    r"|invalid (?:action|input|argument|command|request|call)|(?:unable to|could not|couldn't|cannot|can't) \w"
    r"|no (?:replacement|change|edit)s? (?:was|were) (?:made|performed|applied)|success\"\s*:\s*false\b)",
    re.IGNORECASE,
)
_EXIT: Final = re.compile(r"(?:<returncode>|\bexit(?:ed)?(?:[ _]with)?[ _](?:code|status)\"?:?)\s?[1-9]", re.IGNORECASE)
_UNKNOWN_TOOL: Final = re.compile(
    r"(?:unknown|unregistered|unrecogni[sz]ed|undefined|invalid|no such|non-?existent) (?:tool|function)\b"
    r"(?! (?:arg|param|input|call))"
    r"|(?:tool|function) (?:name )?[\"'`]?[\w.\-/]*[\"'`]? ?(?:is |was |does )?"
    r"(?:not (?:found|exist|registered|available|defined|a valid)|unknown|doesn't exist)"
    r"|not a (?:valid|known|registered) (?:tool|function)\b|toolnotfound",
    re.IGNORECASE,
)
