// Series of the dashboards, filtered by every variable that their labels allow.
{
  local filtered(name, labels, matchers) =
    '%s{%s}' % [name, std.join(', ', ['%s=~"$%s"' % [label, label] for label in ['job'] + labels] + matchers)],

  ofJob(name, matchers=[]): filtered(name, [], matchers),
  ofAgent(name, matchers=[]): filtered(name, ['agent'], matchers),
  ofTool(name, matchers=[]): filtered(name, ['agent', 'tool'], matchers),
  ofModel(name, matchers=[]): filtered(name, ['agent', 'model'], matchers),

  rate(series, by=[]): self.sum('rate(%s[$__rate_interval])' % series, by),
  perHour(series, by=[]): self.rate(series, by) + ' * 3600',
  // How much a counter grew over the time shown.
  grown(series, by=[]): self.sum('increase(%s[$__range])' % series, by),
  quantile(q, bucket, by=[]): 'histogram_quantile(%s, %s)' % [q, self.rate(bucket, ['le'] + by)],
  share(part, whole, by=[]): '%s / (%s > 0)' % [self.rate(part, by), self.rate(whole, by)],

  sum(expr, by=[]): self.over('sum', expr, by),
  // Over replicas, as the alerts do.
  max(expr, by=[]): self.over('max', expr, by),
  over(operator, expr, by): if by == [] then '%s(%s)' % [operator, expr] else '%s by (%s) (%s)' % [operator, std.join(', ', by), expr],
}
