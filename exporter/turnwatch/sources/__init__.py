"""Where calls are reported from: by hand, spans, files, frameworks."""
