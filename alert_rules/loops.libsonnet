// An agent repeats itself: within one turn, or over the turns of one conversation.
function(config, q)
  local ofTool = ['agent', 'tool'];

  // The gauge is exact for what happened within the window of one turn. The counter is or-ed in for what it cannot see:
  // a loop slower than the window, workers whose gauges are gone, pushed metrics. It has nothing to add where the gauge
  // was past its threshold within the window: of a process that died, it would go on after the gauge's page is over.
  local counted = q.group(q.rose('agent_duplicate_tool_calls_total', ofTool, q.withoutPolling))
                  + '\nunless '
                  + q.group(q.above('agent_turn_identical_calls_max', ofTool, 'identicalCalls', ofTools=true, hold=true));
  local duplicates = q.anyOf([
    q.above('agent_turn_identical_calls_max', ofTool, 'identicalCalls', ofTools=true),
    q.group(counted),
  ]);

  local repeated(result) = q.group(q.rose('agent_repeat_results_total', ofTool, ['result="' + result + '"'] + q.withoutPolling));

  // Stale by the gauge, or by the counters where the gauges saw too little. They did see enough, and say no, when the
  // stale ones were never more than 1 (each call came after a change: edit, test, edit, test). Over the window, not now:
  // a gauge forgets a call a scrape earlier than increase() does.
  local stale = q.anyOf([
    q.above('agent_turn_stale_calls_max', ofTool, 'identicalCalls', ofTools=true),
    q.group(std.join('\n', [
      q.group(counted),
      'and ' + repeated('same'),
      'unless ' + repeated('changed'),
      'unless ' + q.held('agent_turn_stale_calls_max', ofTool, q.withoutPolling) + ' == 1',
    ])),
  ]);

  // Over two windows: increase() forgets a result up to a scrape before the gauge forgets its call, and whether anybody
  // sees results does not change from one moment to the next.
  local known = q.group(q.anyOf([
    q.rose('agent_repeat_results_total', ofTool, ['result=~"same|changed"'] + q.withoutPolling, windows=2),
    q.held('agent_turn_stale_calls_max', ofTool, q.withoutPolling) + ' > 1',
  ]));

  local otherwise = q.group(duplicates) + '\nunless ' + q.group(stale);
  local changed = q.group(otherwise) + '\nand ' + known;
  local unknown = q.group(otherwise) + '\nunless ' + known;

  local duplicateToolCalls(severity, expr, what) = {
    alert: 'AgentDuplicateToolCalls',
    severity: severity,
    expr: expr,
    filledIn: ofTool,
    dashboard: 'turnwatch-loops',
    summary: 'An agent repeats an identical tool call within one turn.',
    description:
      'Agent {{ $labels.agent }} keeps calling {{ $labels.tool }} with identical arguments within one turn: '
      + '{{ printf "%.0f" $value }} such calls in the last ' + config.window + '. ' + what,
  };
  local sameResult = 'The result is the same every time and nothing changed in between.';
  local otherResult = 'The results differ, or are not known.';

  // The engine's own verdict, of every shape of loop. Only "stuck" pages; "observe" says nothing.
  local loopDetected(severity, verdict, what) = {
    alert: 'AgentLoopDetected',
    severity: severity,
    expr: q.rose('agent_loops_detected_total', ofTool + ['kind'], ['severity="' + verdict + '"'], bornLate=true),
    filledIn: ofTool,
    dashboard: 'turnwatch-loops',
    summary: 'The loop engine found a turn that makes no progress.',
    description:
      'Agent {{ $labels.agent }} ' + what + ': {{ $labels.kind }} on {{ $labels.tool }} '
      + '(such verdicts in the last ' + config.window + ': {{ printf "%.0f" $value }}).',
  };

  // Repetition alone pages nobody here: whether it is in vain, the verdicts say.
  local conversationRunaway(severity) = {
    local above(limit, key, severity) =
      q.labelled('limit', limit, q.above('agent_conversation_' + limit + '_max', ['agent'], key, severity)),
    local limit(key) =
      local threshold = config.thresholds[key];
      '(limit ' + q.number(if std.isNumber(threshold) then threshold else threshold[severity]) + ' unless set for this agent)',

    alert: 'AgentConversationRunaway',
    severity: severity,
    expr: q.anyOf(
      [above('model_calls', 'conversationModelCalls', severity), above('spend_usd', 'conversationSpendUsd', severity)]
      + (if severity == 'warning' then [above('identical_calls', 'conversationIdenticalCalls', null)] else [])
    ),
    filledIn: ['agent'],
    dashboard: 'turnwatch-turns',
    summary: 'One conversation of an agent has grown far past what a person would have.',
    description:
      'A conversation with agent {{ $labels.agent }} has, over its turns, {{ if eq $labels.limit "model_calls" }}'
      + 'made {{ printf "%.0f" $value }} model calls ' + limit('conversationModelCalls')
      + '{{ else if eq $labels.limit "spend_usd" }}cost {{ printf "%.2f" $value }} USD ' + limit('conversationSpendUsd')
      + (
        if severity == 'warning'
        then '{{ else }}made the same tool call {{ printf "%.0f" $value }} times ' + limit('conversationIdenticalCalls')
        else ''
      )
      + '{{ end }}. Each turn may look healthy by itself.',
  };

  (
    if config.unknownResultSeverity == 'warning' then [
      duplicateToolCalls('critical', stale, sameResult),
      duplicateToolCalls('warning', otherwise, otherResult),
    ]
    else if config.unknownResultSeverity == 'critical' then [
      duplicateToolCalls('critical', stale + '\nor\n' + q.group(unknown), 'The result is the same every time, or not known.'),
      duplicateToolCalls('warning', changed, 'The results differ.'),
    ]
    else [
      duplicateToolCalls('critical', stale, sameResult),
      duplicateToolCalls('warning', changed, 'The results differ.'),
      duplicateToolCalls(config.unknownResultSeverity, unknown, 'The results are not known.'),
    ]
  )
  + [
    loopDetected('critical', 'stuck', 'is stuck'),
    loopDetected('warning', 'warn', 'may be getting stuck'),
  ]
  + [conversationRunaway(severity) for severity in ['critical', 'warning']]
