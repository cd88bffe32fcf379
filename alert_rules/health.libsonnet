// The watch itself: is anything being seen at all?
function(config, q)
  local rose(name, matchers=[]) = q.rose(name, [], matchers, bornLate=true);
  local lately(counter) = q.grown(counter, [], [], '1h');
  [
  {
    alert: 'AgentMetricsAbsent',
    severity: 'warning',
    pendingFor: config.targetDownFor,
    // A known target is one that had these metrics within a day; a replica that was removed has no `up` and is not missed.
    expr:
      '(' + q.metric('up') + ' == 0)\nand on (job, instance)\n'
      + q.group(q.anyOf([
        'present_over_time(' + q.metric(name) + '[1d])'
        for name in ['turnwatch_build_info', 'agent_turns_total']
      ]))
      + (if config.alwaysOn then '\nor\nabsent(' + q.metric('turnwatch_build_info') + ')' else ''),
    filledIn: ['job'],
    dashboard: 'turnwatch-self',
    summary: 'Agents are running unwatched: their metrics are gone.',
    description:
      (if config.alwaysOn then 'There are no agent metrics at all, or target' else 'Target')
      + ' {{ $labels.instance }} of job {{ $labels.job }} is down for Prometheus, so a loop in its agents would not be seen.',
  },
  {
    alert: 'AgentWatchDegraded',
    severity: 'warning',
    // Something was lost (errors, evicted turns, folded labels), or most calls cannot be compared with each other.
    expr:
      q.anyOf([
        rose('turnwatch_internal_errors_total'),
        // Conversations are dropped as a matter of course: the oldest makes room.
        rose('turnwatch_turns_evicted_total', ['reason!="conversations_bound"']),
        rose('turnwatch_label_values_folded_total'),
        rose('turnwatch_forward_dropped_total'),
      ])
      + '\nor\n'
      + q.group(
        lately('turnwatch_fingerprint_missing_total') + '\n/\n' + lately('agent_tool_calls_total') + ' > 0.5'
        + '\nand ' + lately('agent_tool_calls_total') + ' >= ' + config.minimum.toolCalls
      ),
    filledIn: ['job'],
    dashboard: 'turnwatch-self',
    summary: 'Agents are watched, but not well enough to rely on it.',
    description:
      'turnwatch in job {{ $labels.job }} has failed inside, dropped turns or spans, folded label values, or sees most tool '
      + 'calls without their arguments (reads {{ $value | humanize }}). A loop may go unseen.',
  },
]
