// Series of the dashboards, filtered by every variable that their labels allow.
function(config) {
  local chosen(labels) = [label + '=~"$' + label + '"' for label in labels],
  local filtered(name, labels, matchers) =
    name + '{' + std.join(', ', chosen(config.variablesAbove + ['job'] + labels) + matchers) + '}',

  local rare(series, window, by) =
    local positive(expr) = expr + ' > 0';
    local before = positive('last_over_time(' + series + '[1h] offset ' + window + ')');
    $.sum(
      '(' + positive('last_over_time(' + series + '[' + window + '])') + ' unless ' + before + ') or '
      + positive('increase(' + series + '[' + window + '])'), by
    ),

  ofJob(name, matchers=[]): filtered(name, [], matchers),
  ofAgent(name, matchers=[]): filtered(name, ['agent'], matchers),
  ofTool(name, matchers=[]): filtered(name, ['agent', 'tool'], matchers),
  ofModel(name, matchers=[]): filtered(name, ['agent', 'model'], matchers),
  ofModelAlone(name, matchers=[]): filtered(name, ['model'], matchers),

  // Series of the recording rules, which have agent, maybe tool, and the labels that alerts keep.
  recorded(name, labels): name + '{' + std.join(', ', chosen(config.aggregationLabels + labels)) + '}',

  rate(series, by=[]): self.sum('rate(' + series + '[$__rate_interval])', by),
  // An agent makes few calls: what it does is counted by the minute.
  perMinute(series, by=[]): self.rate(series, by) + ' * 60',
  perHour(series, by=[]): self.rate(series, by) + ' * 3600',
  // How much a counter grew over the time shown.
  grown(series, by=[]): self.sum('increase(' + series + '[$__range])', by),
  // The same for what happens rarely, over the time shown or near each point. A series begins with its first event, and
  // increase() counts from there: one that was not there before, or was 0, counts with all it has. Before: within an
  // hour, so that a target that was away for minutes is not born again. Only what is above 0 is joined: four fifths of
  // the time went into series where nothing ever happened.
  happened(series, by=[]): rare(series, '$__range', by),
  events(series, by=[]): rare(series, '$__rate_interval', by),
  // { p50: …, p95: … } of a histogram, or of each label value: { '{{agent}} p95': … }.
  quantiles(buckets, by=[], quantiles=['50', '95']): {
    [std.join(' ', ['{{' + label + '}}' for label in by] + ['p' + percent])]:
      'histogram_quantile(0.' + percent + ', ' + $.rate(buckets, ['le'] + by) + ')'
    for percent in quantiles
  },
  average(ofLabels, histogram, by=[]):
    self.rate(ofLabels(histogram + '_sum'), by) + ' / (' + self.rate(ofLabels(histogram + '_count'), by) + ' > 0)',
  share(part, whole, by=[]): self.rate(part, by) + ' / (' + self.rate(whole, by) + ' > 0)',
  firing(matchers): filtered('ALERTS', [], ['alertstate="firing"'] + matchers),

  sum(expr, by=[]): self.over('sum', expr, by),
  // Over replicas, as the alerts do.
  max(expr, by=[]): self.over('max', expr, by),
  over(operator, expr, by): operator + (if by == [] then '' else ' by (' + std.join(', ', by) + ') ') + '(' + expr + ')',
}
