// The two oldest questions, asked of spans: for backends that search them and have no metrics of these agents.
local promql = import 'promql.libsonnet';

local block(language, text) = '```' + language + '\n' + text + '\n```\n';
// std.manifestJsonEx takes the interpreter half a millisecond a character; as an array's only item, a string is printed
// by the interpreter itself, with its quotes.
local quoted(text) = local printed = std.toString([text]); std.substr(printed, 1, std.length(printed) - 2);
local json(value, indent='') =
  local within(open, lines, close) =
    open + '\n' + std.join(',\n', [indent + '  ' + line for line in lines]) + '\n' + indent + close;
  if std.isObject(value) then
    within('{', [quoted(key) + ': ' + json(value[key], indent + '  ') for key in std.objectFields(value)], '}')
  else if std.isArray(value) then within('[', [json(item, indent + '  ') for item in value], ']')
  else if std.isString(value) then quoted(value)
  else std.toString(value);
local paragraphs(parts) = std.join('\n', parts);

{
  spanQueries::
    local config = $._config;
    local calls = std.toString(config.thresholds.identicalCalls);
    local iterations = std.toString(config.thresholds.iterations.warning);
    local window = std.toString(promql(config).seconds(config.window));

    local trigger(name, breakdowns, calculation, filters, limit) = block('json', json({
      name: name,
      query: {
        time_range: std.parseInt(window),
        breakdowns: breakdowns,
        calculations: [calculation],
        filters: filters,
      },
      threshold: { op: '>', value: limit },
      // A trigger may look back at most four times as far as it runs often.
      frequency: std.ceil(std.parseInt(window) / 240) * 60,
    }));
    local is(column, value) = { column: column, op: '=', value: value };
    local exists(column) = { column: column, op: 'exists' };

    local monitor(name, search, rollup, by, limit, message) = block('json', json({
      name: name,
      type: 'trace-analytics alert',
      query: 'trace-analytics("' + search + '").rollup(' + rollup + ').by("' + by + '").last("' + window + 's") > ' + limit,
      message: message,
    }));

    local sql(lines) = block('sql', std.join('\n', lines));
    local recent = 'WHERE Timestamp >= now() - INTERVAL ' + window + ' SECOND';

    local own = '### Spans that turnwatch opens\n';
    local genAi = '### GenAI spans\n';

    paragraphs([
      '# Span queries\n',
      'The same tool call more than ' + calls + ' times in one turn within ' + config.window
      + ', and turns with more than ' + iterations + ' model calls, for backends that search spans. '
      + 'Prefer the alert rules where there is a Prometheus: '
      + 'spans arrive when they end, and sampling loses some. Nothing here has been run against these backends.\n',
      'There are two sets, and one of another way in finds nothing:\n',
      '| How turns are watched | Spans | Set |',
      '| --- | --- | --- |',
      '| `turnwatch.turn()`, decorators, guards, where no other instrumentation makes spans of the same | '
      + '`agent.turn`, `tool.execute`, `llm.chat`, with `tool.input_hash` and `agent.iterations` | spans that turnwatch opens |',
      '| `turnwatch.instrument()` | the instrumentation\'s own: `invoke_agent …`, `execute_tool …`, `chat …`; '
      + 'turnwatch writes `loop.detected`, `loop.kind` and `loop.reason` on the agent\'s | GenAI spans |',
      '| `turnwatch serve` | the same, passed on unchanged, so without `loop.detected` | GenAI spans, but for the first query |\n',
      'Arguments are on GenAI spans only where the instrumentation captures content. The second set takes a trace for a '
      + 'turn, and compares arguments as they are written.\n',

      '## Grafana Tempo (TraceQL)\n',
      'Within one trace. Search the last ' + config.window + '.\n',
      own,
      block('traceql', '{ name = "tool.execute" && span.tool.input_hash != nil } | by(span.tool.input_hash) | count() > ' + calls),
      block('traceql', '{ name = "agent.turn" && span.agent.iterations > ' + iterations + ' }'),
      genAi,
      block('traceql', '{ span.loop.detected = true }'),
      block(
        'traceql',
        '{ span.gen_ai.operation.name = "execute_tool" && span.gen_ai.tool.call.arguments != nil } '
        + '| by(span.gen_ai.tool.name) | by(span.gen_ai.tool.call.arguments) | count() > ' + calls
      ),
      block('traceql', '{ span.gen_ai.operation.name = "chat" } | count() > ' + iterations),

      '## Honeycomb (triggers)\n',
      own,
      trigger(
        'Identical tool calls in one turn',
        ['trace.parent_id', 'tool.input_hash', 'gen_ai.tool.name'],
        { op: 'COUNT' },
        [is('name', 'tool.execute'), exists('tool.input_hash')],
        config.thresholds.identicalCalls
      ),
      trigger(
        'Turns with too many model calls',
        ['gen_ai.agent.name'],
        { op: 'MAX', column: 'agent.iterations' },
        [is('name', 'agent.turn')],
        config.thresholds.iterations.warning
      ),
      genAi,
      trigger('Turns with a loop', ['gen_ai.agent.name', 'loop.kind'], { op: 'COUNT' }, [is('loop.detected', true)], 0),
      trigger(
        'Identical tool calls in one trace',
        ['trace.trace_id', 'gen_ai.tool.name', 'gen_ai.tool.call.arguments'],
        { op: 'COUNT' },
        [is('gen_ai.operation.name', 'execute_tool'), exists('gen_ai.tool.call.arguments')],
        config.thresholds.identicalCalls
      ),
      trigger(
        'Traces with too many model calls',
        ['trace.trace_id'],
        { op: 'COUNT' },
        [is('gen_ai.operation.name', 'chat')],
        config.thresholds.iterations.warning
      ),

      '## Datadog (monitors)\n',
      'A monitor cannot group by turn or trace, so those of identical calls count over all turns of a service: use them '
      + 'as a warning. For the same reason none counts the `chat` spans of a trace.\n',
      own,
      monitor(
        'Identical tool calls',
        'resource_name:tool.execute @tool.input_hash:*',
        '"count"',
        'service,@gen_ai.tool.name,@tool.input_hash',
        calls,
        'A tool was called again and again with identical arguments.'
      ),
      monitor(
        'Turns with too many model calls',
        'resource_name:agent.turn',
        '"max", "@agent.iterations"',
        '@gen_ai.agent.name',
        iterations,
        'A turn took far more model calls than it should.'
      ),
      genAi,
      monitor(
        'Turns with a loop',
        '@loop.detected:true',
        '"count"',
        'service,@gen_ai.agent.name,@loop.kind',
        '0',
        'A turn was judged to be in a loop.'
      ),
      monitor(
        'Identical tool calls',
        '@gen_ai.operation.name:execute_tool @gen_ai.tool.call.arguments:*',
        '"count"',
        'service,@gen_ai.tool.name,@gen_ai.tool.call.arguments',
        calls,
        'A tool was called again and again with identical arguments.'
      ),

      "## ClickHouse (the Collector's table otel_traces)\n",
      own,
      sql([
        "SELECT TraceId, ParentSpanId AS turn, SpanAttributes['gen_ai.tool.name'] AS tool,",
        "       SpanAttributes['tool.input_hash'] AS input_hash, count() AS calls",
        'FROM otel_traces',
        recent + " AND SpanName = 'tool.execute' AND input_hash != ''",
        'GROUP BY TraceId, turn, tool, input_hash',
        'HAVING calls > ' + calls,
        'ORDER BY calls DESC',
      ]),
      sql([
        "SELECT TraceId, SpanAttributes['gen_ai.agent.name'] AS agent,",
        "       toUInt32OrZero(SpanAttributes['agent.iterations']) AS iterations",
        'FROM otel_traces',
        recent + " AND SpanName = 'agent.turn' AND iterations > " + iterations,
        'ORDER BY iterations DESC',
      ]),
      genAi,
      sql([
        "SELECT Timestamp, TraceId, SpanAttributes['gen_ai.agent.name'] AS agent, SpanAttributes['loop.reason'] AS reason",
        'FROM otel_traces',
        recent + " AND SpanAttributes['loop.detected'] = 'true'",
        'ORDER BY Timestamp DESC',
      ]),
      sql([
        "SELECT TraceId, SpanAttributes['gen_ai.tool.name'] AS tool,",
        "       SpanAttributes['gen_ai.tool.call.arguments'] AS arguments, count() AS calls",
        'FROM otel_traces',
        recent + " AND SpanAttributes['gen_ai.operation.name'] = 'execute_tool' AND arguments != ''",
        'GROUP BY TraceId, tool, arguments',
        'HAVING calls > ' + calls,
        'ORDER BY calls DESC',
      ]),
      sql([
        'SELECT TraceId, count() AS calls',
        'FROM otel_traces',
        recent + " AND SpanAttributes['gen_ai.operation.name'] = 'chat'",
        'GROUP BY TraceId',
        'HAVING calls > ' + iterations,
        'ORDER BY calls DESC',
      ]),
    ]),
}
