"""Ways in which the spans of captured cases may reach a service: late, in pieces, in another order, again, or not all.

Each takes the spans of a case in the order in which they ended and a source of random numbers, and gives the batches
with the seconds at which they come. The exporters' batches are five seconds apart, and a service waits ten for what
comes late.
"""

from itertools import groupby

from tests.sources.spans.corpus import CountingMeter, added_up

from turnwatch.core.watch import Watch
from turnwatch.sources.spans import sdk_json
from turnwatch.sources.spans.assembly import Assembler
from turnwatch.sources.spans.span import SERVER

SECOND = 1_000_000_000
# A batch's wait at the exporter, and what a collector and the network add to it.
EXPORT_SECONDS, UNDERWAY_SECONDS = 5.0, 3.0
# What a service is told, but for the times at which it gives up.
OPTIONS = {
    "grace_seconds": 10.0,
    "settle_seconds": 30.0,
    "idle_seconds": 1800.0,
    "name_seconds": 6.0,
    "outcome_seconds": 10.0,
}
# How long a run takes: some batches, and no two spans of one call further apart than they are waited for.
RUN_SECONDS = 12
LONG_AFTER = 120.0


def deliver(deliveries):
    """What a service makes of batches that come at these seconds; a second's tick passes in between."""
    meter, turns = CountingMeter(), []
    assembler = Assembler(Watch(meter=meter), on_end=turns.append, **OPTIONS)
    now = 0.0
    for at, batch in sorted(deliveries, key=lambda delivery: delivery[0]):
        while now + 1.0 < at:
            now += 1.0
            assembler.tick(now)
        now = max(now, at)
        assembler.feed(batch, now)
    for _ in range(60):
        now += 1.0
        assembler.tick(now)
    assembler.flush()
    return added_up(turns, meter)


# Attributes that say how long something took.
_IN_SECONDS = {"gen_ai.server.time_to_first_token"}


def read(spans):
    return [sdk_json.span_of(span) for span in spans]


def slowed_down(spans, times):
    """The same run, but for every second that it took it takes several."""
    began = min(span.start_ns for span in spans)
    for span in spans:
        span.start_ns = began + (span.start_ns - began) * times
        span.end_ns = began + (span.end_ns - began) * times
        for name in _IN_SECONDS & span.attributes.keys():
            span.attributes = {**span.attributes, name: span.attributes[name] * times}
    return spans


def lasting(spans, seconds):
    """The same run, as if it had taken so long."""
    took = max(span.end_ns for span in spans) - min(span.start_ns for span in spans)
    return slowed_down(spans, max(1, int(seconds * SECOND / max(took, 1))))


def exported(spans, random, first=None):
    """In the batches of one exporter: what ended within five seconds, behind the first of them by what they wait."""
    began = min(span.start_ns for span in spans)
    phase = random.uniform(0, EXPORT_SECONDS) if first is None else first

    def batch_of(span):
        return int(((span.end_ns - began) / SECOND + phase) // EXPORT_SECONDS) + 1

    ordered = sorted(spans, key=lambda span: span.end_ns)
    return [(number * EXPORT_SECONDS, list(batch)) for number, batch in groupby(ordered, key=batch_of)]


def underway(deliveries, random):
    return [(at + random.uniform(0, UNDERWAY_SECONDS), batch) for at, batch in deliveries]


def subtree(spans, root):
    """A span and all that lies in it."""
    inside = {root.span_id}
    for _ in spans:
        inside |= {span.span_id for span in spans if span.parent_id in inside}
    return inside


# Everything comes, in time


def in_an_exporters_batches(spans, random):
    return exported(lasting(read(spans), RUN_SECONDS), random)


def by_a_collector_with_several_senders(spans, random):
    return underway(exported(lasting(read(spans), RUN_SECONDS), random), random)


def split_anywhere(spans, random):
    spans = read(spans)
    split = random.randint(0, len(spans))
    return [(0.0, spans[:split]), (random.uniform(0, 9), spans[split:])]


def split_anywhere_and_the_later_part_first(spans, random):
    spans = read(spans)
    split = random.randint(0, len(spans))
    return [(0.0, spans[split:]), (random.uniform(0, 9), spans[:split])]


def each_span_at_a_time_of_its_own(spans, random):
    return [(random.uniform(0, 9), [span]) for span in read(spans)]


def whole_traces_after_a_tail_sampler(spans, random):
    batches = {}
    for span in read(spans):
        batches.setdefault(span.trace_id, []).append(span)
    for batch in batches.values():
        random.shuffle(batch)
    return [(30.0 + number * 0.01, batch) for number, batch in enumerate(batches.values())]


def sent_again_long_after(spans, random):
    deliveries = exported(lasting(read(spans), RUN_SECONDS), random)
    return deliveries + [(at + LONG_AFTER, batch) for at, batch in deliveries]


def sent_again_before_the_answer(spans, random):
    deliveries = exported(lasting(read(spans), RUN_SECONDS), random)
    return deliveries + underway(deliveries, random)


def mcp_servers_in_processes_of_their_own(spans, random):
    return _of_two_processes(lasting(read(spans), RUN_SECONDS), _is_of_mcp_server, random)


def mcp_servers_on_hosts_whose_clocks_differ(spans, random):
    spans = lasting(read(spans), RUN_SECONDS)
    off = int(random.uniform(-3, 3) * SECOND)
    deliveries = _of_two_processes(spans, _is_of_mcp_server, random)
    for span in spans:
        if _is_of_mcp_server(span):
            span.start_ns += off
            span.end_ns += off
    return deliveries


def _is_of_mcp_server(span):
    return span.kind == SERVER and "mcp.method.name" in span.attributes


def _of_two_processes(spans, is_elsewhere, random):
    here = [span for span in spans if not is_elsewhere(span)]
    there = [span for span in spans if is_elsewhere(span)]
    return [delivery for process in (here, there) if process for delivery in exported(process, random)]


def every_instrumentation_in_a_batch_of_its_own(spans, random):
    deliveries = []
    for at, batch in exported(lasting(read(spans), RUN_SECONDS), random):
        for scope in sorted({span.scope for span in batch}):
            deliveries.append((at + random.uniform(0, 1), [span for span in batch if span.scope == scope]))
    return deliveries


def sub_agents_in_processes_of_their_own(spans, random):
    """What lies in a tool call that runs an agent is another process's, with batches of its own."""
    spans = lasting(read(spans), RUN_SECONDS)
    elsewhere = set()
    for tool in spans:
        if "ask" in f"{tool.name} {tool.attributes.get('tool.name')} {tool.attributes.get('gen_ai.tool.name')}":
            elsewhere |= subtree(spans, tool) - {tool.span_id}
    return _of_two_processes(spans, lambda span: span.span_id in elsewhere, random)


# Spans of one process come in the order in which they ended, or all of a trace at once.
IN_ORDER = [
    in_an_exporters_batches,
    by_a_collector_with_several_senders,
    split_anywhere,
    whole_traces_after_a_tail_sampler,
    sent_again_long_after,
    sent_again_before_the_answer,
    mcp_servers_in_processes_of_their_own,
    mcp_servers_on_hosts_whose_clocks_differ,
    sub_agents_in_processes_of_their_own,
]
OUT_OF_ORDER = [
    split_anywhere_and_the_later_part_first,
    each_span_at_a_time_of_its_own,
    every_instrumentation_in_a_batch_of_its_own,
]


# Not everything comes, or not everything that shows where it belongs


def with_batches_lost(spans, random):
    return [delivery for delivery in exported(lasting(read(spans), 2 * RUN_SECONDS), random) if random.random() < 0.7]


def with_links_in_place_of_parents_between_processes(spans, random):
    spans = lasting(read(spans), RUN_SECONDS)
    for span in spans:
        if _is_of_mcp_server(span):
            span.parent_id = 0
    return _of_two_processes(spans, _is_of_mcp_server, random)


IN_PART = [
    with_batches_lost,
    with_links_in_place_of_parents_between_processes,
]
