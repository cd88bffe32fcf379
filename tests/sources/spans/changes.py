"""Ways to change captured spans, or how they are sent, that change nothing of what happened.

Each takes the spans of a case, as the SDK's JSON has them and in the order in which they ended, and a source of random
numbers; it gives the batches that are fed.
"""

import json
import re

from turnwatch.sources.spans import sdk_json

CLIENT = ("opentelemetry.instrumentation.httpx", {"http.request.method": "POST"})
OWN = ("my.company.lib", {"step": "x"})
DATABASE = ("opentelemetry.instrumentation.asyncpg", {"db.system": "postgresql"})
# Ids that a provider gives: of calls, replies and messages.
_GIVEN_IDS = re.compile(r"\b(call_|resp_|chatcmpl-|msg_|toolu_|fc_|rs_)(?=\w*\d)")


def read(spans):
    return [sdk_json.span_of(span) for span in spans]


def one_by_one(spans):
    return [[span] for span in read(spans)]


def _id(span):
    return span["context"]["span_id"]


def _trace(span):
    return span["context"]["trace_id"]


def _new_id(random):
    return f"0x{random.getrandbits(63) | 1:016x}"


def _depth(spans):
    by_id = {_id(span): span for span in spans}

    def depth(span):
        parents = 0
        while span["parent_id"] in by_id:
            span = by_id[span["parent_id"]]
            parents += 1
        return parents

    return depth


def _with_attributes(spans, change):
    return [{**span, "attributes": change(span["attributes"] or {})} for span in spans]


def _somebody_elses(span, scope_and_attributes, random, **more):
    scope, attributes = scope_and_attributes
    changed = {**span, "name": "GET", "attributes": attributes, "scope": {"name": scope}, "events": [], "status": {}}
    changed["context"] = {**span["context"], "span_id": _new_id(random)}
    return {**changed, **more}


# How the spans are sent


def shuffled_in_one_body(spans, random):
    batch = read(spans)
    random.shuffle(batch)
    return [batch]


def in_batches_of_any_size(spans, random):
    batch, batches = read(spans), []
    while batch:
        size = random.randint(1, 8)
        batches.append(batch[:size])
        batch = batch[size:]
    return batches


def children_before_their_parents(spans, _):
    depth = _depth(spans)
    return one_by_one(sorted(spans, key=lambda span: (-depth(span), span["end_time"])))


def parents_before_their_children(spans, _):
    depth = _depth(spans)
    return one_by_one(sorted(spans, key=lambda span: (span["start_time"], depth(span))))


def every_request_sent_twice(spans, _):
    return [batch for batch in one_by_one(spans) for _ in range(2)]


def everything_sent_again(spans, _):
    return one_by_one(spans) * 2


def every_span_twice_in_its_body(spans, _):
    return [batch * 2 for batch in one_by_one(spans)]


# What the spans say beside what they say of calls


def other_ids(spans, random):
    text = json.dumps(spans)
    for digits, of in ((16, _id), (32, _trace)):
        for old in sorted({of(span) for span in spans}):
            text = text.replace(old.removeprefix("0x"), f"{random.getrandbits(4 * digits - 1) | 1:0{digits}x}")
    run = f"{random.getrandbits(32):08x}"
    return one_by_one(json.loads(_GIVEN_IDS.sub(lambda match: match[1] + run, text)))


def attributes_in_another_order(spans, _):
    return one_by_one(_with_attributes(spans, lambda attributes: dict(reversed(attributes.items()))))


def attributes_of_the_applications_own(spans, _):
    own = {"app.tier": "gold", "thread.id": 7, "enduser.id": "u-1", "tags": ["a", "b"], "flags": '{"dark": true}'}
    return one_by_one(_with_attributes(spans, lambda attributes: {**own, **attributes}))


def another_version_of_the_instrumentation(spans, _):
    return one_by_one(
        [{**span, "scope": {**span["scope"], "version": "99.0.0rc1", "schema_url": ""}} for span in spans]
    )


def _numbers_as(kind, spans):
    def change(attributes):
        return {name: kind(value) if type(value) is int else value for name, value in attributes.items()}

    return one_by_one(_with_attributes(spans, change))


def numbers_as_texts(spans, _):
    return _numbers_as(str, spans)


def numbers_as_doubles(spans, _):
    return _numbers_as(float, spans)


# What other spans there are


def _between(spans, whose, random):
    changed = []
    for span in spans:
        if span["parent_id"] and random.random() < 0.7:
            between = _somebody_elses(span, whose, random)
            changed += [{**span, "parent_id": _id(between)}, between]
        else:
            changed.append(span)
    return one_by_one(changed)


def requests_between_spans_and_their_parents(spans, random):
    return _between(spans, CLIENT, random)


def spans_of_the_applications_own_between(spans, random):
    return _between(spans, OWN, random)


def spans_of_a_database_beside_and_below(spans, random):
    changed = []
    for span in spans:
        below = _somebody_elses(span, DATABASE, random, parent_id=_id(span))
        changed += [below, span, _somebody_elses(span, DATABASE, random)]
    return one_by_one(changed)


def a_web_request_round_all(spans, random):
    if len({_trace(span) for span in spans}) > 1:
        return one_by_one(spans)
    times = {"start_time": min(span["start_time"] for span in spans), "end_time": max(s["end_time"] for s in spans)}
    request = _somebody_elses(spans[-1], OWN, random, parent_id=None, kind="SpanKind.SERVER", **times)
    inside = [span if span["parent_id"] else {**span, "parent_id": _id(request)} for span in spans]
    return one_by_one([*inside, request])


def a_caller_whose_span_never_comes(spans, random):
    if len({_trace(span) for span in spans}) > 1:
        return one_by_one(spans)
    caller = _new_id(random)
    return one_by_one([span if span["parent_id"] else {**span, "parent_id": caller} for span in spans])


def two_runs_at_once(spans, random):
    one, other = other_ids(spans, random), other_ids(spans, random)
    return [batch for pair in zip(one, other, strict=True) for batch in pair]


CHANGES = [
    shuffled_in_one_body,
    in_batches_of_any_size,
    children_before_their_parents,
    parents_before_their_children,
    every_request_sent_twice,
    everything_sent_again,
    every_span_twice_in_its_body,
    other_ids,
    attributes_in_another_order,
    attributes_of_the_applications_own,
    another_version_of_the_instrumentation,
    numbers_as_texts,
    numbers_as_doubles,
    requests_between_spans_and_their_parents,
    spans_of_the_applications_own_between,
    spans_of_a_database_beside_and_below,
    a_web_request_round_all,
    a_caller_whose_span_never_comes,
]
