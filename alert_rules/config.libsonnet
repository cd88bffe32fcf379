// Every number and name that the pack depends on. `turnwatch pack render --config FILE` lays the file's
// `detect`, `agents`, `tools` and `alerts` sections over it, so a threshold stands in one file for agent and pack.
{
  _config+:: {
    // Which series are the agents'. Empty: all of them. Example: 'job=~"agents/.+"'.
    // Set it where several teams share one Prometheus and each renders its own pack.
    selector: '',

    // Labels that stay on an alert beside agent, tool and model. A label that your series do not have does no harm.
    // Never pod or instance: replicas are folded with max, and an alert must not move when a pod does.
    aggregationLabels: ['cluster', 'namespace', 'job'],

    // How far back an alert looks. It must equal the exporter's detect.window_seconds (300),
    // and be at least four scrape intervals, or increase() has too few samples.
    window: '5m',

    // How often loops, the limits of turns and conversations, and spend are evaluated; '' for as often as Prometheus
    // does by itself (evaluation_interval). Set it, to how often you scrape, where you cannot change that and it is 1m,
    // Prometheus' own default: a page then comes up to 85 s after the call (15 to the scrape, 60 to the evaluation, 10
    // of group_wait). Grafana's own alerts do not follow it.
    evaluationInterval: '',

    // How long an alert outlives its cause. Covers two failed scrapes a minute apart, and lets the notification of a
    // process that looped and died leave Alertmanager (group_wait 10 to 30 s). Longer only delays the resolution.
    keepFiringFor: '2m',

    // Where the links of an alert lead. Point them at your own copies.
    runbookBaseUrl: 'https://github.com/turnwatch/turnwatch/blob/main/runbooks',
    dashboardBaseUrl: 'http://localhost:3000/d',

    // Colours of lines that names tell apart (agents, tools, models) where no threshold does. 'by-size': by how large a
    // line is against the largest, safe for colour-blind eyes on every Grafana. From Grafana 13 on 'palette-colorblind'
    // gives each of the first eight lines a colour of its own (12.4 draws them by size then, and earlier ones no panel
    // that asks for it). 'palette-classic' has more colours; red-green-blind people take its first for its fifth.
    seriesPalette: 'by-size',

    // How long a target must be down before it is missed: longer than a deployment takes, and than one failed scrape.
    targetDownFor: '2m',

    // Severity of duplicate calls whose results nobody saw (hand-counted calls, spans without results):
    // critical, warning or info. A warning, because a polling tool looks the same from there.
    unknownResultSeverity: 'warning',

    // true: agents run all the time, so no series at all is an alert.
    // false: agents come and go (jobs, scale to zero), and only a known target that is down is one.
    alwaysOn: false,

    // What `pack render --for kubernetes` puts into the metadata of its objects.
    kubernetes: {
      // Where they are applied; '' leaves that to `kubectl apply -n`.
      namespace: '',
      // The same of the AlertmanagerConfig, and of the dashboards' ConfigMaps, where those differ. The operator has the
      // routes of an AlertmanagerConfig take alerts of its own namespace only, so that one belongs where the agents are.
      alertmanagerNamespace: self.namespace,
      dashboardNamespace: self.namespace,
      // By which the operator finds rules, monitors and routes: what ruleSelector, serviceMonitorSelector and
      // alertmanagerConfigSelector match. Example: { release: 'kube-prometheus-stack' }.
      labels: {},
      // By which Grafana's sidecar finds dashboards.
      dashboardLabels: { grafana_dashboard: '1' },
    },

    // Uid of the Prometheus data source that Grafana's own alerts ask (`pack render --for grafana`).
    grafanaDatasourceUid: 'prometheus',

    // true: what looks back over days, or over the buckets of every tool, is worked out once a minute by recording rules,
    // and AgentSpendGrowth and the dashboards read that. From about fifty agents with twenty tools each those queries
    // take more than 200 ms (bench/queries.py). false for smaller fleets: panels then need nothing but the metrics, and
    // show the time before the rules were loaded, too.
    recordingRules: false,

    // Each threshold is a "more than". Setting only a warning one moves the critical one with it, here and for an agent:
    // in proportion, but for those where another rule is written.
    thresholds: {
      // Identical calls (same tool, same arguments) within one turn and window. The second may be a retry or a check
      // after a write; a third has nothing left to learn. Raise it per tool, not here.
      // It must equal the exporter's detect.max_identical_calls. Severity goes by staleness, so there is one number.
      identicalCalls: 2,

      // Model calls of one turn. A support agent needs two to five, and eight is a long way past that. A coding agent
      // needs 40 to 100: raise it for that agent, or each of its turns is a warning. Nobody is paged before 100, and an
      // agent with a number of its own not before three times that: of 500 turns of a coding agent 416 went past 24 model
      // calls, 371 of all solved their task, and 8 went past 100. The warning must equal the exporter's
      // detect.iteration_threshold.
      iterations: { warning: 8, critical: std.max(100, 3 * self.warning) },

      // Tokens of one turn, its sub-agents included. Every model call sends the whole turn again, so ten calls with a
      // context of 20,000 are at the limit. Raise it for agents that read books.
      turnTokens: { warning: 200000, critical: 5 * self.warning },

      // Seconds that one turn in twenty may take, over 15 minutes. People leave after one minute; ten minutes are a
      // batch job. Keep it at a bucket boundary of agent_turn_duration_seconds (60, 120, 300, 600, 1800).
      turnSeconds: { warning: 120, critical: 5 * self.warning },

      // Seconds since the oldest open turn began. Past a quarter of an hour it hangs, or its end was never recorded.
      // Raise it for agents that wait for a person within a turn.
      openTurnSeconds: { warning: 900, critical: 4 * self.warning },

      // Dollars of one turn, its sub-agents included. A tool-using turn on a large model costs 1 to 20 cents, so one
      // dollar is several times a costly turn. Set it to about ten times your own median (histogram
      // agent_turn_spend_usd), for research and coding agents by name.
      turnSpendUsd: { warning: 1, critical: 5 * self.warning },

      // Dollars an hour of one agent, over all its replicas and 15 minutes: 240 a day. Set the warning to three times
      // your busiest hour, so that only what nobody planned is said.
      spendUsdPerHour: { warning: 10, critical: 5 * self.warning },

      // Times the dollars of the same two days a week earlier (and two weeks, where Prometheus keeps that long). Growth
      // that was planned is less than threefold a week; 127 to 891 dollars is sevenfold. Lower it to 1.5 for agents
      // whose traffic is steady.
      spendGrowthRatio: 3,

      // Times the tool calls a turn of the day before. A new prompt moves it by half; a broken one from 3 to 28.
      toolCallsSpikeRatio: 3,

      // Share of a tool's calls that fail, over 15 minutes. Agents recover from one failure in ten; at one in four they
      // spend their turns on it, and at three in four the tool is down. Per tool too. The critical share lies two thirds
      // of the way from the warning one to all calls, so that it can be passed whatever the warning is; 1 is never.
      toolErrorShare: { warning: 0.25, critical: 1 - (1 - self.warning) / 3 },

      // Share of an agent's calls to a model that fail, over 15 minutes. A throttled call now and then is tried again; at
      // one in four the users wait for it, and at three in four the agent is down. The critical share moves as a tool's.
      modelErrorShare: { warning: 0.25, critical: 1 - (1 - self.warning) / 3 },

      // Model calls of one conversation: 50, six turns at the iteration limit. People give up long before that; two
      // agents that answer each other do not. An agent with its own `iterations` gets this one in proportion.
      conversationModelCalls: {
        warning: std.ceil(6.25 * $._config.thresholds.iterations.warning),
        critical: 4 * self.warning,
      },

      // Dollars of one conversation. Five dear turns, and twenty.
      conversationSpendUsd: { warning: 5, critical: 4 * self.warning },

      // The same call over the turns of one conversation. A user who asks again explains three or four. A warning only:
      // an agent that runs its tests after each edit repeats itself all day, and gets somewhere.
      conversationIdenticalCalls: 5,
    },

    // How much there must be before a share, an average or a ratio says anything.
    minimum: {
      turns: 10,
      toolCalls: 10,
      modelCalls: 10,
      // Dollars of two days. Below it, growth is not worth a message.
      growthUsd: 50,
    },

    // When the watch itself is said to be degraded, beside the first of what it loses.
    watch: {
      // Share of an hour's tool calls without arguments, or of its model calls without usage. A few are a source that
      // carries less; most of them are a switch that is off.
      unseenShare: 0.5,
      // How full the queue of what `turnwatch serve` passes on has been all through the window. Lower it where what is
      // behind it takes long to mend; from 1 on, what finds no room is dropped, which is said anyway.
      queueRatio: 0.8,
    },

    // What is special about one agent: any threshold above. Example: { coder: { iterations: 60, turnSpendUsd: 10 } }.
    agents: {},

    // What is special about one tool: identicalCalls, toolErrorShare, or polling: true for a tool that is meant to be asked again
    // (it then raises no duplicate alert; a stuck verdict on it still does). A tool's number wins over its agent's.
    // Example: { get_job_status: { polling: true }, read_file: { identicalCalls: 4 } }.
    tools: {},

    // A switch per alert: false leaves it out.
    enabled: {
      AgentDuplicateToolCalls: true,
      AgentLoopDetected: true,
      AgentConversationRunaway: true,
      AgentIterationsHigh: true,
      AgentTurnTokensHigh: true,
      AgentTurnLatencyHigh: true,
      AgentTurnStuckOpen: true,
      AgentStoppedByGuard: true,
      AgentTurnSpendHigh: true,
      AgentSpendRateHigh: true,
      AgentSpendGrowth: true,
      AgentUnpricedModel: true,
      AgentToolErrorsHigh: true,
      AgentModelErrorsHigh: true,
      AgentToolCallsPerTurnSpike: true,
      AgentMetricsAbsent: true,
      AgentWatchDegraded: true,
    },
  },
}
