{ alertmanagerConfig:: {} }
