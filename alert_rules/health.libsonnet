// The watch itself: is anything being seen at all?
function(config, q) [
  {
    alert: 'AgentMetricsAbsent',
    severity: 'warning',
    pendingFor: '2m',
    // A known target is one that had these metrics within a day; a replica that was removed has no `up` and is not missed.
    expr:
      '(%s == 0)\nand on (job, instance)\n' % q.metric('up')
      + q.group('present_over_time(%s[1d])\nor\npresent_over_time(%s[1d])' % [
        q.metric('turnwatch_build_info'),
        q.metric('agent_turns_total'),
      ])
      + (if config.alwaysOn then '\nor\nabsent(%s)' % q.metric('turnwatch_build_info') else ''),
    labelsOfSeries: ['job'],
    dashboard: 'turnwatch-overview',
    summary: 'Agents are running unwatched: their metrics are gone.',
    description: |||
      %s is down for Prometheus, so a loop in its agents would not be seen.
    ||| % (if config.alwaysOn then 'No agent metrics at all, or target {{ $labels.instance }} of job {{ $labels.job }}' else 'Target {{ $labels.instance }} of job {{ $labels.job }}'),
  },
]
