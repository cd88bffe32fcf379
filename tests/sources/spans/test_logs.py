"""Log events that say what spans leave out, whichever come first."""

import json

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from tests.sources.spans.corpus import CountingMeter, added_up, batches, cases

from turnwatch.core.watch import Watch
from turnwatch.sources.spans.assembly import Assembler
from turnwatch.sources.spans.logs import LogData, logs_of_json, logs_of_request

CLAUDE = [case for case in cases() if case.dialect == "claude_agent_sdk_native"]
WRAPPED = [
    case
    for case in cases()
    if case.dialect == "bedrock_botocore"
    or (case.dialect == "openai_v2_content" and case.name in ("loop_wrapped", "loop_reorder"))
]
DETAILS = [case for case in cases() if case.dialect == "openai_genai_event"]


def claude_logs(case):
    for file in sorted(case.folder.glob(f"{case.name}.otlp-logs-*.pb")):
        yield from logs_of_request(ExportLogsServiceRequest.FromString(file.read_bytes()))


def sdk_logs(case):
    for line in (case.folder / f"{case.name}.logs.jsonl").read_text().splitlines():
        record = json.loads(line)
        yield LogData(int(record["span_id"], 16), record["event_name"], record["attributes"], record["body"])


def read(case, logs, *, logs_first):
    meter, turns = CountingMeter(), []
    assembler = Assembler(Watch(meter=meter), on_end=turns.append)
    if logs_first:
        assembler.feed_logs(logs, 0.0)
    for number, batch in enumerate(batches(case, "otlp-protobuf")):
        assembler.feed(batch, number * 0.06)
    if not logs_first:
        assembler.feed_logs(logs, 1.0)
    assembler.flush()
    return added_up(turns, meter)


@pytest.mark.parametrize("logs_first", [True, False])
@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CLAUDE])
def test_arguments_in_log_events_are_joined_by_the_calls_id(case, logs_first):
    found = read(case, claude_logs(case), logs_first=logs_first)
    assert found.missing_arguments == 0
    assert found.numbers == case.expected
    assert found.faults == 0


@pytest.mark.parametrize("case", [pytest.param(case, id=f"{case.dialect}-{case.name}") for case in WRAPPED])
def test_replies_in_log_events_are_joined_by_the_models_span(case):
    found = read(case, sdk_logs(case), logs_first=True)
    assert (found.numbers.tool_calls, found.numbers.repeats) == (case.expected.tool_calls, case.expected.repeats)
    assert found.missing_arguments == 0
    assert found.turns[0].engine.mode == "full"


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in DETAILS])
def test_messages_in_the_events_of_model_calls_are_read_as_if_their_spans_carried_them(case):
    found = read(case, sdk_logs(case), logs_first=True)
    assert found.numbers == case.expected
    assert (found.missing_arguments, found.faults) == (0, 0)
    assert found.turns[0].engine.mode == "full"


def test_a_reply_in_a_model_calls_event_that_comes_late_gives_its_tool_calls():
    (case,) = [case for case in DETAILS if case.name == "loop_wrapped"]
    logs = {log.span_id: log for log in sdk_logs(case)}
    meter, turns = CountingMeter(), []
    assembler = Assembler(Watch(meter=meter), on_end=turns.append)
    for number, span in enumerate(span for batch in batches(case, "sdk-json") for span in batch):
        assembler.feed([span], number * 5.0)
        assembler.tick(number * 5.0 + 3.0)
        assembler.feed_logs([logs[span.span_id]] if span.span_id in logs else [], number * 5.0 + 4.0)
    assembler.flush()
    found = added_up(turns, meter)
    assert (found.numbers.tool_calls, found.numbers.repeats) == (case.expected.tool_calls, case.expected.repeats)


def test_without_the_log_events_calls_are_counted_after_a_while():
    case = CLAUDE[0]
    turns = []
    assembler = Assembler(Watch(), on_end=turns.append)
    for batch in batches(case, "otlp-protobuf"):
        assembler.feed(batch, 0.0)
    assembler.tick(11.0)
    assembler.tick(25.0)
    assert [(turn.tool_calls, turn.missing_arguments) for turn in turns] == [(3, 3)]


def test_calls_of_several_traces_with_one_id_keep_their_own_arguments():
    meter, turns = CountingMeter(), []
    assembler = Assembler(Watch(meter=meter), on_end=turns.append)
    for case in CLAUDE:
        for batch in batches(case, "otlp-protobuf"):
            assembler.feed(batch, 0.0)
    for case in CLAUDE:
        assembler.feed_logs(claude_logs(case), 1.0)
    assembler.flush()
    found = added_up(turns, meter)
    assert found.missing_arguments == 0
    assert found.numbers.tool_calls == sum(case.expected.tool_calls for case in CLAUDE)
    assert found.numbers.repeats == sum(case.expected.repeats for case in CLAUDE)


def test_log_events_in_json_say_the_same():
    attributes = {"event.name": "tool_result", "tool_use_id": "t1", "tool_input": '{"q": 1}'}
    pairs = [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()]
    record = {"body": {"stringValue": "claude_code.tool_result"}, "attributes": pairs, "spanId": "00000000000000ff"}
    (log,) = logs_of_json({"resourceLogs": [{"scopeLogs": [{"logRecords": [record, {"body": {}}]}]}]})
    assert (log.span_id, log.body, dict(log.attributes)) == (255, "claude_code.tool_result", attributes)


def test_an_events_name_may_stand_in_an_attribute():
    request = ExportLogsServiceRequest()
    record = request.resource_logs.add().scope_logs.add().log_records.add()
    record.attributes.add(key="event.name").value.string_value = "gen_ai.choice"
    record.attributes.add(key="gen_ai.system").value.string_value = "openai"
    pair = {"key": "event.name", "value": {"stringValue": "gen_ai.choice"}}
    in_json = {"resourceLogs": [{"scopeLogs": [{"logRecords": [{"attributes": [pair]}]}]}]}
    assert [log.event for log in (*logs_of_request(request), *logs_of_json(in_json))] == ["gen_ai.choice"] * 2
