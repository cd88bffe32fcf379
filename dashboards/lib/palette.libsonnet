// Colours that stay apart for colour-blind eyes (Okabe and Ito, 2008), and what each means here.
local blue = '#0072B2';
local sky = '#56B4E9';
local green = '#009E73';
local yellow = '#F0E442';
local orange = '#E69F00';
local vermilion = '#D55E00';
local purple = '#CC79A7';
local grey = '#DDDDDD';
local wine = '#882255';

{
  good: sky,
  warning: orange,
  critical: vermilion,

  // Lines of open sets (agents, tools, models), by their highest point against that of the highest line. No palette
  // tells fifty names apart: the legend, in the same order, says who it is, and the colour how large. None of these means
  // danger, and each is seen on Grafana's dark and light background.
  bySize: [
    { from: null, color: blue },
    { from: 12, color: green },
    { from: 33, color: purple },
    { from: 66, color: sky },
  ],

  // The values of closed label sets keep their colours over all dashboards.
  ofLabel: {
    stop_reason: {
      final_answer: blue,
      max_iterations: orange,
      max_tool_calls: yellow,
      max_seconds: purple,
      max_usd: green,
      max_turn_tokens: sky,
      loop_detected: vermilion,
      'error': wine,
      unknown: grey,
    },
    outcome: { ok: blue, 'error': vermilion, cached: sky, denied: purple },
    result: { same: vermilion, changed: blue, unknown: grey },
    type: { input: blue, output: orange, cache_read: sky, cache_write: green, reasoning: purple },
    severity: { observe: sky, warn: orange, stuck: vermilion },
    verdict: { pass: blue, fail: vermilion, unknown: grey },
    signal: { traces: blue, metrics: green, logs: purple },
    mode: { full: blue, args_only: orange, none: grey },
  },
}
