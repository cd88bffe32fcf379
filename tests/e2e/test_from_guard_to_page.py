"""From a guard that pages to a notification, through a real Alertmanager and without Prometheus."""

import turnwatch as tw
from turnwatch.core.watch import Watch

PATIENCE_SECONDS = 60


def test_a_guard_that_pages_reaches_the_webhook_through_alertmanager(servers):
    pager = tw.Pager(tw.alertmanager(servers.alertmanager, {"cluster": "eu"}))
    with tw.turn("paged-by-guard", "c-17", watch=Watch(), on_loop="page", pager=pager) as turn:
        for _ in range(5):
            turn.call_tool("search", lambda: "nothing new")
    assert pager.flush()

    def is_ours(one):
        return one.labels.get("agent") == "paged-by-guard" and one.labels.get("source") == "guard"

    page = servers.webhook.wait_for(is_ours, timeout_seconds=PATIENCE_SECONDS)
    assert page is not None
    assert page.labels["severity"] == "critical"
    assert page.labels["cluster"] == "eu"
    assert page.annotations["conversation_id"] == "c-17"
    assert "search gave the same result" in page.annotations["description"]
