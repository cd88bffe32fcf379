// PromQL that every rule is put together from. Strings are added, not formatted: `%` takes the Jsonnet interpreter 17 ms.
local seconds(duration) =
  local unit = { s: 1, m: 60, h: 3600, d: 86400, w: 604800 };
  std.parseInt(std.substr(duration, 0, std.length(duration) - 1)) * unit[duration[std.length(duration) - 1]];

local quoted(names) =
  local special = std.set(std.stringChars('\\.+*?()|[]{}^$'));
  local escaped(name) = std.join('', [
    if std.setMember(char, special) then '\\' + char else char
    for char in std.stringChars(name)
  ]);
  // As the only item of an array, a string is printed with its quotes.
  local printed = std.toString([std.join('|', [escaped(name) for name in names])]);
  std.substr(printed, 1, std.length(printed) - 2);

// 0.1 would be printed with all its 17 digits.
local number(value) = if value == std.floor(value) then std.toString(value) else '%g' % value;

// What a critical threshold becomes where only the warning one is given. Iterations: three times the warning, and never
// below everybody's. A share keeps its part of the way to 1, which no share passes. All others go in proportion.
local movedWith(key, standard, warning) =
  if key == 'iterations' then std.max(standard.critical, 3 * warning)
  else if std.endsWith(key, 'Share') then
    if standard.warning >= 1 then 1 else 1 - (1 - warning) * (1 - standard.critical) / (1 - standard.warning)
  else warning * standard.critical / standard.warning;

local matching(label, names) = if names == [] then [] else [label + '=~' + quoted(names)];
local otherThan(label, names) = if names == [] then [] else [label + '!~' + quoted(names)];

function(config) {
  local this = self,

  seconds: seconds,
  number: number,

  metric(name, matchers=[]):
    local all = [matcher for matcher in [config.selector] + matchers if matcher != ''];
    if all == [] then name else name + '{' + std.join(', ', all) + '}',

  // A series of recording.libsonnet. The selector is in it already.
  recorded(name, matchers=[]): if matchers == [] then name else name + '{' + std.join(', ', matchers) + '}',

  // Largest over replicas. Never sum: one duplicate in each of three pods is not a loop.
  largest(labels, expr): 'max by (' + std.join(', ', config.aggregationLabels + labels) + ') (' + expr + ')',

  gauge(name, labels, matchers=[]): this.largest(labels, this.metric(name, matchers)),

  // The gauge's largest value within the window.
  held(name, labels, matchers=[]):
    this.largest(labels, 'max_over_time(' + this.metric(name, matchers) + '[' + config.window + '])'),

  // A counter that went up within the window. `> 0` is not hurt by the extrapolation of increase(). The second form is
  // for a series that was born at 3: its increase is 0 for ever, but all it counted is younger than its _created.
  // `bornLate`: the exporter has no such series before its first count, so it is always born above 0, and OpenTelemetry
  // and worker processes have no _created. There a series that was not there within the hour before the window is new.
  // The hour is for gaps: the same form with `offset` alone fires after every gap longer than the window. Where _created
  // is, it says better what is new: to a Prometheus that sees a target for the first time, every series is.
  // `windows`: look back over so many of them.
  rose(name, labels, matchers=[], bornLate=false, windows=1):
    local window = if windows == 1 then config.window else windows * seconds(config.window) + 's';
    local counter = this.metric(name, matchers);
    local created = this.metric(std.strReplace(name, '_total', '_created'), matchers);
    local forms = [
      'increase(' + counter + '[' + window + ']) > 0',
      counter + ' > 0 and time() - ' + created + ' < ' + seconds(window),
    ] + (
      if bornLate
      then [counter + ' > 0 unless last_over_time(' + counter + '[1h] offset ' + window + ') unless ' + created]
      else []
    );
    this.anyOf([this.largest(labels, form) for form in forms]),

  // Sums are for what adds up over replicas: dollars, calls, turns.
  sum(labels, expr): 'sum by (' + std.join(', ', config.aggregationLabels + labels) + ') (' + expr + ')',
  grown(name, labels, matchers, range, offset=''):
    local back = if offset == '' then '' else ' offset ' + offset;
    this.sum(labels, 'increase(' + this.metric(name, matchers) + '[' + range + ']' + back + ')'),

  // The same series with one more label, which says in an alert's text which of its conditions it was.
  labelled(label, value, expr): 'label_replace(\n' + this.indent(expr + ',\n"' + label + '", "' + value + '", "", ""') + '\n)',

  anyOf(exprs): std.join('\nor\n', exprs),

  indent(expr, by='  '): by + std.strReplace(expr, '\n', '\n' + by),
  group(expr): '(\n' + this.indent(expr) + '\n)',

  pollingTools: [tool for tool in std.objectFields(config.tools) if std.get(config.tools[tool], 'polling', false)],
  withoutPolling: otherThan('tool', this.pollingTools),

  // Agents that have no number of their own for this threshold.
  withoutOwn(key):
    otherThan('agent', [name for name in std.objectFields(this.agents) if std.objectHas(this.agents[name], key)]),

  // The series that one threshold holds for: [{ matchers, threshold }], one for the default, one for each override.
  // `ofTools`: a tool may have its own number, and it wins over its agent's.
  scopes(key, severity=null, ofTools=false):
    local standard = config.thresholds[key];
    local value(spec) =
      if severity == null then spec
      else
        local given = if std.isNumber(spec) then { warning: spec } else spec;
        if std.objectHas(given, severity) then given[severity]
        else if std.objectHas(given, 'warning') then movedWith(key, standard, given.warning)
        else standard[severity];
    local own(overrides) = {
      [name]: value(overrides[name][key])
      for name in std.objectFields(overrides)
      if std.objectHas(overrides[name], key)
    };
    local agents = own(this.agents);
    local tools = if ofTools then own(config.tools) else {};
    local perName(label, values, matchers) = [
      {
        matchers: matchers + matching(label, [name for name in std.objectFields(values) if values[name] == threshold]),
        threshold: threshold,
      }
      for threshold in std.set(std.objectValues(values))
    ];
    local left = if key == 'identicalCalls' then this.pollingTools else [];
    local outsideTools = otherThan('tool', std.setUnion(std.objectFields(tools), left));
    [{ matchers: otherThan('agent', std.objectFields(agents)) + outsideTools, threshold: value(standard) }]
    + perName('agent', agents, outsideTools)
    + perName('tool', { [tool]: tools[tool] for tool in std.objectFields(tools) if !std.member(left, tool) }, []),

  // An agent that may take more iterations a turn takes more model calls a conversation.
  agents: {
    [name]:
      local agent = config.agents[name];
      local iterations = config.thresholds.iterations.warning;
      local conversations = config.thresholds.conversationModelCalls.warning;
      local own = std.get(agent, 'iterations', iterations);
      local allowed = if std.isNumber(own) then own else std.get(own, 'warning', iterations);
      if allowed == iterations then agent
      else { conversationModelCalls: std.ceil(conversations * allowed / iterations) } + agent
    for name in std.objectFields(config.agents)
  },

  // An expression for each threshold that holds somewhere, or-ed. `exprOf` gets the matchers and the threshold.
  eachScope(key, severity, exprOf, ofTools=false): this.anyOf([
    exprOf(scope.matchers, number(scope.threshold))
    for scope in this.scopes(key, severity, ofTools)
  ]),

  // A gauge above its threshold, overrides included.
  above(name, labels, key, severity=null, ofTools=false, hold=false):
    local read = if hold then this.held else this.gauge;
    this.eachScope(key, severity, function(matchers, threshold) read(name, labels, matchers) + ' > ' + threshold, ofTools),
}
