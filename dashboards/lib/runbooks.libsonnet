// Puts links to the runbooks on the panels that show what an alert goes by.
local panelsOf = {
  AgentDuplicateToolCalls: [
    'Agents that repeat themselves',
    'Duplicate calls',
    'Identical calls in one turn',
    'Repeated',
    'Results of repeated calls',
    'Stale calls in one turn',
    'Worst repetition',
    'Worst stale repetition',
  ],
  AgentLoopDetected: ['Stuck verdicts', 'Verdicts', 'Wasted', 'Wasted per hour by agent', 'Wasted tool calls'],
  AgentConversationRunaway: ['Dearest conversation', 'Longest conversation', 'Repetition over a conversation'],
  AgentIterationsHigh: ['Iterations of a turn', 'Iterations of all turns', 'Longest turn', 'Turns past the iteration limit'],
  AgentTurnTokensHigh: ['Most tokens'],
  AgentTurnLatencyHigh: ['Duration of a turn'],
  AgentTurnStuckOpen: ['Oldest open turn'],
  AgentStoppedByGuard: ['Stopped by guards'],
  AgentTurnSpendHigh: ['Dearest turn', 'Dollars of a turn'],
  AgentSpendRateHigh: ['Spend by agent and model', 'Spend per hour', 'Spend per hour by agent', 'Spend per hour by model'],
  AgentSpendGrowth: ['Against a week ago', 'Forecast for 30 days', 'Spent'],
  AgentUnpricedModel: ['Calls without a price', 'Calls without a price or usage'],
  AgentModelErrorsHigh: ['Model calls by outcome'],
  AgentToolErrorsHigh: ['Calls by outcome', 'Errors', 'Errors by tool'],
  AgentToolCallsPerTurnSpike: ['Calls of a turn', 'Tool calls of a turn'],
  AgentMetricsAbsent: ['Processes', 'Processes watched', 'Targets down'],
  AgentWatchDegraded: [
    'Calls without a price',
    'Calls without a price or usage',
    'Calls without arguments',
    'Export requests',
    'Internal errors',
    'Judged in full',
    'Label values folded',
    'Not passed on',
    'Queue',
    'Turns evicted',
    'Turns judged',
  ],
};

function(config, dashboard) dashboard {
  panels: [
    panel {
      [if panel.type != 'row' then 'links']: [
        {
          type: 'link',
          title: 'Runbook of ' + alert,
          url: config.runbookBaseUrl + '/' + alert + '.md',
          targetBlank: true,
          icon: 'doc',
          tooltip: '',
          tags: [],
          asDropdown: false,
          includeVars: false,
          keepTime: false,
        }
        for alert in std.objectFields(panelsOf)
        if config.enabled[alert] && std.member(panelsOf[alert], panel.title)
      ],
    }
    for panel in dashboard.panels
  ],
}
