"""The environment in which the command line under the Claude Agent SDK talks to nobody but the test."""


def environment(model, home):
    """Its variables: the stub for a model, a home of its own, and nothing else sent anywhere."""
    return {
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": "none",
        "HOME": str(home),
        "CLAUDE_CONFIG_DIR": str(home / "config"),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_ENABLE_TELEMETRY": "0",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_AUTOUPDATER": "1",
        "ENABLE_TOOL_SEARCH": "false",
    }
