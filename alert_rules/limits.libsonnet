// A turn goes past what a turn may take: model calls, tokens, time, or what a guard allows.
function(config, q)
  local ofAgent = ['agent'];
  local aTurn = 'A turn of agent {{ $labels.agent }}, still open or ended in the last ' + config.window + ',';
  local limit(key, severity, unit='') =
    'limit ' + q.number(config.thresholds[key][severity]) + unit + ' unless set for this agent';

  // What every alert here has beside its query and its words.
  local alert(name, severity, own) = {
    alert: name,
    severity: severity,
    filledIn: ofAgent,
    dashboard: 'turnwatch-turns',
  } + own;
  local bothSeverities(name, own) = [alert(name, severity, own(severity)) for severity in ['critical', 'warning']];

  bothSeverities('AgentIterationsHigh', function(severity) {
    // The counter is for workers that died before their gauge was read. It is raised at the exporter's threshold, the
    // warning's; an agent with its own number is left to the gauge, since that number may be known to the pack only.
    expr: q.anyOf(
      [q.above('agent_turn_iterations_max', ofAgent, 'iterations', severity)]
      + (
        if severity == 'warning'
        then [q.rose('agent_iteration_limit_exceeded_total', ofAgent, q.withoutOwn('iterations'))]
        else []
      )
    ),
    summary: 'A turn of an agent takes far more model calls than it should.',
    description:
      // The warning's value may be the counter's, which counts turns, not calls.
      aTurn + ' went past its limit of model calls ('
      + (if severity == 'critical' then 'reads {{ $value | humanize }}; ' else '')
      + limit('iterations', severity) + ').',
  })

  + bothSeverities('AgentTurnTokensHigh', function(severity) {
    expr: q.above('agent_turn_tokens_max', ofAgent, 'turnTokens', severity),
    summary: 'A turn of an agent has used far more tokens than it should.',
    description:
      aTurn + ' has used {{ $value | humanize }} tokens, sub-agents included (' + limit('turnTokens', severity) + ').',
  })

  + bothSeverities('AgentTurnLatencyHigh', function(severity) {
    expr: q.eachScope('turnSeconds', severity, function(matchers, threshold)
      'histogram_quantile(0.95, '
      + q.sum(ofAgent + ['le'], 'rate(' + q.metric('agent_turn_duration_seconds_bucket', matchers) + '[15m])')
      + ') > ' + threshold + '\nand ' + q.grown('agent_turn_duration_seconds_count', ofAgent, matchers, '15m')
      + ' >= ' + config.minimum.turns),
    summary: 'The turns of an agent take far longer than they should.',
    description:
      'One turn in twenty of agent {{ $labels.agent }} took more than {{ $value | humanizeDuration }} over the last 15m ('
      + limit('turnSeconds', severity, ' s') + ').',
  })

  + bothSeverities('AgentTurnStuckOpen', function(severity) {
    expr: q.above('agent_open_turn_age_seconds_max', ofAgent, 'openTurnSeconds', severity),
    summary: 'A turn of an agent has been open for far too long.',
    description:
      'A turn of agent {{ $labels.agent }} has been open for {{ $value | humanizeDuration }} ('
      + limit('openTurnSeconds', severity, ' s') + '). It hangs, or its end was never recorded.',
  })

  + [
    alert('AgentStoppedByGuard', 'warning', {
      // A kill is somebody's decision, and they know.
      expr: q.rose('agent_guard_stops_total', ofAgent + ['stop_reason'], ['stop_reason!="killed"'], bornLate=true),
      summary: 'A guard has stopped turns of an agent.',
      description:
        'Guards stopped turns of agent {{ $labels.agent }} with {{ $labels.stop_reason }}, '
        + '{{ printf "%.0f" $value }} in the last ' + config.window + '. Their users got a partial answer or none.',
    }),
  ]
