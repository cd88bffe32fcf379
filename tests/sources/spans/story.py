"""Spans written down one by one, and what an assembler makes of them."""

from turnwatch.core.watch import Watch, steady_clock
from turnwatch.settings import Bounds, Settings
from turnwatch.sources.spans.assembly import Assembler
from turnwatch.sources.spans.span import SpanData

TRACE = 0xABC
SECOND = 1_000_000_000


class Story:
    """Writes spans down and feeds them to an assembler."""

    def __init__(self, **options):
        self.ended = []
        settings = Settings(bounds=Bounds(open_turns=options.pop("open_turns", 1000)))
        self.watch = Watch(settings, clock=options.pop("clock", steady_clock))
        self.faults = []
        self.watch.internal_error = self.faults.append
        self.assembler = Assembler(self.watch, on_end=self.ended.append, **options)
        self.now = 0.0
        self._next = 10_000

    def span(self, name, attributes, parent=0, *, at=0.0, seconds=0.5, trace=TRACE, **more):
        self._next += 1
        start = int((1_000_000 + at) * SECOND)
        return SpanData(
            trace,
            more.pop("span_id", self._next),
            parent,
            name,
            attributes=attributes,
            start_ns=start,
            end_ns=start + int(seconds * SECOND),
            scope=more.pop("scope", "my.instrumentation"),
            **more,
        )

    def chat(self, parent=0, *, at=0.0, reply_id="", tokens=10, **more):
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "gpt-4o",
            "gen_ai.usage.input_tokens": tokens,
            "gen_ai.usage.output_tokens": 1,
            **more.pop("attributes", {}),
        }
        if reply_id:
            attributes["gen_ai.response.id"] = reply_id
        return self.span("chat gpt-4o", attributes, parent, at=at, **more)

    def tool(self, parent=0, *, at=0.0, args='{"q": 1}', name="search", call_id="", **more):
        attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
        if args is not None:
            attributes["gen_ai.tool.call.arguments"] = args
        if call_id:
            attributes["gen_ai.tool.call.id"] = call_id
        attributes.update(more.pop("attributes", {}))
        return self.span(f"execute_tool {name}", attributes, parent, at=at, **more)

    def agent(self, span_id, parent=0, *, name="bot", seconds=60.0, **more):
        attributes = {"gen_ai.operation.name": "invoke_agent", **more.pop("attributes", {})}
        if name:
            attributes["gen_ai.agent.name"] = name
        return self.span(f"invoke_agent {name}", attributes, parent, span_id=span_id, seconds=seconds, **more)

    def step(self, span_id, parent=0, **more):
        return self.span("step", {"gen_ai.operation.name": "agent_step"}, parent, span_id=span_id, **more)

    def feed(self, *spans, after=0.1):
        self.now += after
        self.assembler.feed(spans, self.now)
        assert not self.faults

    def pass_time(self, seconds):
        self.now += seconds
        self.assembler.tick(self.now)

    def all_turns(self):
        self.assembler.flush()
        assert not self.faults
        return {turn.agent: turn for turn in self.ended}


def only_turn(story):
    """The turn of a story that has one."""
    (turn,) = story.all_turns().values()
    return turn
