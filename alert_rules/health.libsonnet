// The watch itself: is anything being seen at all?
function(config, q) [
  {
    alert: 'AgentMetricsAbsent',
    severity: 'warning',
    pendingFor: '2m',
    // A known target is one that had these metrics within a day; a replica that was removed has no `up` and is not missed.
    expr:
      '(' + q.metric('up') + ' == 0)\nand on (job, instance)\n'
      + q.group(q.anyOf([
        'present_over_time(' + q.metric(name) + '[1d])'
        for name in ['turnwatch_build_info', 'agent_turns_total']
      ]))
      + (if config.alwaysOn then '\nor\nabsent(' + q.metric('turnwatch_build_info') + ')' else ''),
    labelsOfSeries: ['job'],
    dashboard: 'turnwatch-overview',
    summary: 'Agents are running unwatched: their metrics are gone.',
    description:
      (if config.alwaysOn then 'There are no agent metrics at all, or target' else 'Target')
      + ' {{ $labels.instance }} of job {{ $labels.job }} is down for Prometheus, so a loop in its agents would not be seen.',
  },
]
