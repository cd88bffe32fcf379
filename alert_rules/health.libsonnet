// The watch itself: is anything being seen at all?
function(config, q)
  local rose(name, matchers=[]) = q.rose(name, [], matchers, bornLate=true);
  local ofAgent = ['agent'];
  local lately(counter, labels=[], matchers=[]) = q.grown(counter, labels, matchers, '1h');
  // Most of so many, or more.
  local mostOf(part, whole, minimum) =
    part + '\n/\n' + whole + ' > ' + q.number(config.watch.unseenShare) + '\nand ' + whole + ' >= ' + minimum;

  // Each cause: its label, what is asked, and what an alert says of it.
  local causes = [
    {
      cause: 'internal_errors',
      expr: rose('turnwatch_internal_errors_total'),
      says: 'has failed inside, {{ printf "%.0f" $value }} times in the last ' + config.window + ' (the log has the place)',
    },
    {
      cause: 'settings_faults',
      expr: q.largest([], q.metric('turnwatch_settings_faults')) + ' > 0',
      says: 'goes on without {{ printf "%.0f" $value }} of its settings that are wrong, so guards may be missing '
            + '(the log names them)',
    },
    {
      cause: 'evicted_turns',
      // Conversations are dropped as a matter of course: the oldest makes room.
      expr: rose('turnwatch_turns_evicted_total', ['reason!="conversations_bound"']),
      says: 'has dropped {{ printf "%.0f" $value }} turns that had not ended, in the last ' + config.window,
    },
    {
      cause: 'folded_labels',
      expr: rose('turnwatch_label_values_folded_total'),
      says: 'has folded names of agents, tools or models past a bound into __other__, {{ printf "%.0f" $value }} times in the last '
            + config.window,
    },
    {
      cause: 'refused_requests',
      // Those that an exporter does not send again. What leads nowhere (not_found, wrong_method) is often no exporter's,
      // and without the token anybody comes by; but only an exporter keeps coming.
      expr: q.anyOf([
        rose('turnwatch_requests_total', ['outcome=~"malformed|unsupported|too_large|slow|fault|partial"']),
        std.join('\nand ', [
          q.grown('turnwatch_requests_total', [], ['outcome="unauthorized"'], config.window, windowsBefore) + ' > 0'
          for windowsBefore in ['', config.window, 2 * q.seconds(config.window) + 's']
        ]),
      ]),
      says: 'has refused {{ printf "%.0f" $value }} export requests in the last ' + config.window
            + ', and what was in them is lost (turnwatch_requests_total has the outcomes)',
    },
    {
      cause: 'not_forwarded',
      expr: rose('turnwatch_forward_dropped_total'),
      says: 'could not pass on {{ printf "%.0f" $value }} of the spans and log records it took in the last ' + config.window,
    },
    {
      cause: 'forward_queue',
      // All through the window: a burst fills a queue for a moment.
      expr: q.largest([], 'min_over_time(' + q.metric('turnwatch_forward_queue_ratio') + '[' + config.window + '])')
            + ' > ' + q.number(config.watch.queueRatio),
      says: 'has what it passes on in a queue that is {{ $value | humanizePercentage }} full, and will drop what finds no room',
    },
    {
      cause: 'arguments_not_seen',
      expr: mostOf(
        lately('turnwatch_fingerprint_missing_total'), lately('agent_tool_calls_total'), config.minimum.toolCalls
      ),
      says: 'sees {{ $value | humanizePercentage }} of the tool calls of the last 1h without their arguments, '
            + 'so they cannot be compared',
    },
    {
      cause: 'results_not_seen',
      // Not one result in any of these turns, whose calls do end: those by `record` take no time, and promise none.
      expr: lately('agent_turns_judged_total', ofAgent, ['mode="args_only"']) + ' >= ' + config.minimum.turns
            + '\nunless ' + lately('agent_turns_judged_total', ofAgent, ['mode="full"']) + ' > 0'
            + '\nand ' + lately('agent_tool_call_duration_seconds_count', ofAgent) + ' > 0',
      says: 'has seen no result of a tool in the last {{ printf "%.0f" $value }} turns of agent {{ $labels.agent }}, '
            + 'so none can be found stuck',
    },
    {
      cause: 'usage_not_seen',
      expr: mostOf(
        lately('agent_model_calls_without_usage_total', ofAgent),
        lately('agent_model_calls_total', ofAgent),
        config.minimum.modelCalls,
      ),
      says: 'sees {{ $value | humanizePercentage }} of the model calls of agent {{ $labels.agent }} in the last 1h without '
            + 'usage, so their dollars and tokens count as none and no limit sees them',
    },
  ];
  [
    {
      alert: 'AgentMetricsAbsent',
      severity: 'warning',
      pendingFor: config.targetDownFor,
      // A known target is one that had these metrics within a day; a replica that was removed has no `up` and is not
      // missed. After that day it is known by the alert itself: what is missed stays so until it is up again.
      expr:
        '(' + q.metric('up') + ' == 0)\nand on (job, instance)\n'
        + q.group(q.anyOf([
          'present_over_time(' + q.metric(name) + '[1d])'
          for name in ['turnwatch_build_info', 'agent_turns_total']
        ] + [q.metric('ALERTS', ['alertname="AgentMetricsAbsent"', 'alertstate="firing"'])]))
        + (if config.alwaysOn then '\nor\nabsent(' + q.metric('turnwatch_build_info') + ')' else ''),
      filledIn: ['job'],
      dashboard: 'turnwatch-self',
      summary: 'Agents are running unwatched: their metrics are gone.',
      description:
        (
          if config.alwaysOn
          then '{{ if $labels.instance }}Target {{ $labels.instance }} of job {{ $labels.job }} is down for Prometheus'
               + '{{ else }}There are no agent metrics at all{{ end }}'
          else 'Target {{ $labels.instance }} of job {{ $labels.job }} is down for Prometheus'
        )
        + ', so a loop in its agents would not be seen.',
    },
    {
      alert: 'AgentWatchDegraded',
      severity: 'warning',
      // Something was lost or is about to be, or most of what is needed to judge is not seen.
      expr: q.anyOf([q.labelled('cause', each.cause, each.expr) for each in causes]),
      filledIn: if std.member(config.aggregationLabels, 'job') then ['job'] else [],
      dashboard: 'turnwatch-self',
      summary: 'Agents are watched, but not well enough to rely on it.',
      description:
        'turnwatch{{ with $labels.job }} in job {{ . }}{{ end }} {{ '
        + std.join('{{ else ', ['if eq $labels.cause "' + each.cause + '" }}' + each.says for each in causes])
        + '{{ end }}. A loop, or what it costs, may go unseen.',
    },
  ]
