// Every dashboard, under the name of its file.
local dashboard = import 'lib/dashboard.libsonnet';
local withRunbooks = import 'lib/runbooks.libsonnet';

local specs = [
  import 'overview.libsonnet',
  import 'loops.libsonnet',
  import 'turns.libsonnet',
  import 'tools.libsonnet',
  import 'spend.libsonnet',
  import 'self.libsonnet',
];

{
  grafanaDashboards+:: {
    [spec.uid + '.json']: withRunbooks($._config, dashboard(spec { palette: $._config.seriesPalette }))
    for spec in [made($._config) for made in specs]
  },
}
