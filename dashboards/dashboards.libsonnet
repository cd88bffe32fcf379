// Every dashboard, under the name of its file.
local dashboard = import 'lib/dashboard.libsonnet';

local specs = [
  import 'overview.libsonnet',
];

{
  grafanaDashboards+:: {
    [spec.uid + '.json']: dashboard(spec)
    for spec in [made($._config) for made in specs]
  },
}
