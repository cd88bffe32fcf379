// How agents use their tools: how often a turn, and with how many errors.
function(config, q)
  local ofAgent = ['agent'];
  local ofTool = ['agent', 'tool'];

  local toolErrorsHigh(severity) = {
    alert: 'AgentToolErrorsHigh',
    severity: severity,
    expr: q.eachScope('toolErrorShare', severity, function(matchers, threshold)
      local calls(only=[]) = q.grown('agent_tool_calls_total', ofTool, matchers + only, '15m');
      calls(['outcome="error"']) + '\n/\n' + calls() + ' > ' + threshold
      + '\nand ' + calls() + ' >= ' + config.minimum.toolCalls, ofTools=true),
    filledIn: ofTool,
    dashboard: 'turnwatch-tools',
    summary: 'A tool fails for an agent far too often.',
    description:
      '{{ $value | humanizePercentage }} of the calls of agent {{ $labels.agent }} to {{ $labels.tool }} failed in the '
      + 'last 15m (limit ' + q.number(100 * config.thresholds.toolErrorShare[severity]) + '% unless set for this agent or tool).',
  };

  [toolErrorsHigh(severity) for severity in ['critical', 'warning']]
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
