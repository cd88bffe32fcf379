// The two oldest questions, asked of spans: for backends that search them and have no metrics of these agents.
local promql = import 'promql.libsonnet';

local block(language, text) = '```' + language + '\n' + text + '\n```\n';
local json(value) = std.manifestJsonEx(value, '  ');
local paragraphs(parts) = std.join('\n', parts);

{
  spanQueries::
    local config = $._config;
    local calls = std.toString(config.thresholds.identicalCalls);
    local iterations = std.toString(config.thresholds.iterations.warning);
    local window = std.toString(promql(config).seconds(config.window));

    paragraphs([
      '# Span queries\n',
      'The same tool call more than ' + calls + ' times in one turn within ' + config.window
      + ', and turns with more than ' + iterations + ' model calls, for backends that search spans. '
      + 'They read the spans `agent.turn` and `tool.execute`. Prefer the alert rules where there is a Prometheus: '
      + 'spans arrive when they end, and sampling loses some. Nothing here has been run against these backends.\n',

      '## Grafana Tempo (TraceQL)\n',
      'Within one trace. Search the last ' + config.window + '.\n',
      block('traceql', '{ name = "tool.execute" && span.tool.input_hash != nil } | by(span.tool.input_hash) | count() > ' + calls),
      block('traceql', '{ name = "agent.turn" && span.agent.iterations > ' + iterations + ' }'),

      '## Honeycomb (triggers)\n',
      block('json', json({
        name: 'Identical tool calls in one turn',
        query: {
          time_range: std.parseInt(window),
          breakdowns: ['trace.parent_id', 'tool.input_hash', 'gen_ai.tool.name'],
          calculations: [{ op: 'COUNT' }],
          filters: [
            { column: 'name', op: '=', value: 'tool.execute' },
            { column: 'tool.input_hash', op: 'exists' },
          ],
        },
        threshold: { op: '>', value: config.thresholds.identicalCalls },
        // A trigger may look back at most four times as far as it runs often.
        frequency: std.ceil(std.parseInt(window) / 240) * 60,
      })),
      block('json', json({
        name: 'Turns with too many model calls',
        query: {
          time_range: std.parseInt(window),
          breakdowns: ['gen_ai.agent.name'],
          calculations: [{ op: 'MAX', column: 'agent.iterations' }],
          filters: [{ column: 'name', op: '=', value: 'agent.turn' }],
        },
        threshold: { op: '>', value: config.thresholds.iterations.warning },
        frequency: std.ceil(std.parseInt(window) / 240) * 60,
      })),

      '## Datadog (monitors)\n',
      'A monitor cannot group by turn, so the first counts over all turns of a service: use it as a warning.\n',
      block('json', json({
        name: 'Identical tool calls',
        type: 'trace-analytics alert',
        query: 'trace-analytics("resource_name:tool.execute @tool.input_hash:*").rollup("count").by("service,@gen_ai.tool.name,@tool.input_hash").last("'
               + window + 's") > ' + calls,
        message: 'A tool was called again and again with identical arguments.',
      })),
      block('json', json({
        name: 'Turns with too many model calls',
        type: 'trace-analytics alert',
        query: 'trace-analytics("resource_name:agent.turn").rollup("max", "@agent.iterations").by("@gen_ai.agent.name").last("'
               + window + 's") > ' + iterations,
        message: 'A turn took far more model calls than it should.',
      })),

      "## ClickHouse (the Collector's table otel_traces)\n",
      block('sql', std.join('\n', [
        "SELECT TraceId, ParentSpanId AS turn, SpanAttributes['gen_ai.tool.name'] AS tool,",
        "       SpanAttributes['tool.input_hash'] AS input_hash, count() AS calls",
        'FROM otel_traces',
        'WHERE Timestamp >= now() - INTERVAL ' + window + " SECOND AND SpanName = 'tool.execute' AND input_hash != ''",
        'GROUP BY TraceId, turn, tool, input_hash',
        'HAVING calls > ' + calls,
        'ORDER BY calls DESC',
      ])),
      block('sql', std.join('\n', [
        "SELECT TraceId, SpanAttributes['gen_ai.agent.name'] AS agent,",
        "       toUInt32OrZero(SpanAttributes['agent.iterations']) AS iterations",
        'FROM otel_traces',
        'WHERE Timestamp >= now() - INTERVAL ' + window + " SECOND AND SpanName = 'agent.turn' AND iterations > " + iterations,
        'ORDER BY iterations DESC',
      ])),
    ]),
}
