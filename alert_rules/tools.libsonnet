// How what an agent calls fails, tools and models, and how often a turn calls tools.
function(config, q)
  local ofAgent = ['agent'];

  // Alerts on the share of calls that fail.
  local errorsHigh(name, counter, labels, key, minimum, ofTools, own) = [
    {
      alert: name,
      severity: severity,
      expr: q.eachScope(key, severity, function(matchers, threshold)
        local calls(only=[]) = q.grown(counter, labels, matchers + only, '15m');
        calls(['outcome="error"']) + '\n/\n' + calls() + ' > ' + threshold
        + '\nand ' + calls() + ' >= ' + minimum, ofTools=ofTools),
      filledIn: labels,
    } + own('(limit ' + q.number(100 * config.thresholds[key][severity]) + '% unless set for this agent')
    for severity in ['critical', 'warning']
  ];

  errorsHigh('AgentToolErrorsHigh', 'agent_tool_calls_total', ['agent', 'tool'], 'toolErrorShare', config.minimum.toolCalls, true, function(limit) {
    dashboard: 'turnwatch-tools',
    summary: 'A tool fails for an agent far too often.',
    description:
      '{{ $value | humanizePercentage }} of the calls of agent {{ $labels.agent }} to {{ $labels.tool }} failed in the '
      + 'last 15m ' + limit + ' or tool).',
  })
  + errorsHigh('AgentModelErrorsHigh', 'agent_model_calls_total', ['agent', 'model'], 'modelErrorShare', config.minimum.modelCalls, false, function(limit) {
    dashboard: 'turnwatch-turns',
    summary: 'The model calls of an agent fail far too often.',
    description:
      '{{ $value | humanizePercentage }} of the calls of agent {{ $labels.agent }} to model {{ $labels.model }} failed in '
      + 'the last 15m ' + limit + ').',
  })
  + [
    {
      alert: 'AgentToolCallsPerTurnSpike',
      severity: 'warning',
      // Against the day before the last hour, so that the spike is not in its own baseline. Both sides need turns
      // enough: the average of three turns, or of a quiet night, is not one.
      expr: q.eachScope('toolCallsSpikeRatio', null, function(matchers, threshold)
        local lately(part) = q.grown('agent_turn_tool_calls_' + part, ofAgent, matchers, '1h');
        local dayBefore(part) = q.grown('agent_turn_tool_calls_' + part, ofAgent, matchers, '1d', '1h');
        q.group(lately('sum') + '\n/\n' + lately('count'))
        + '\n/\n'
        + q.group(dayBefore('sum') + '\n/\n' + dayBefore('count'))
        + ' > ' + threshold
        + '\nand ' + lately('count') + ' >= ' + config.minimum.turns
        + '\nand ' + dayBefore('count') + ' >= ' + 2 * config.minimum.turns),
      filledIn: ofAgent,
      dashboard: 'turnwatch-tools',
      summary: 'The turns of an agent make several times more tool calls than the day before.',
      description:
        'The turns of agent {{ $labels.agent }} in the last hour made {{ printf "%.1f" $value }} times as many tool calls '
        + 'as those of the day before (limit ' + q.number(config.thresholds.toolCallsSpikeRatio) + ' unless set for this agent).',
    },
  ]
