"""``turnwatch top``: what agents do now, read from exporters or from a Prometheus."""
