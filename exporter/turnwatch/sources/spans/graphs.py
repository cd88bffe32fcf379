"""Which agent's run is a LangGraph graph that runs inside another one?

LangChain's callbacks tell of nodes and graphs alike. LangGraph gives each node it runs a namespace, and everything in a
graph the namespace of that graph. Where both are the same the span is of a graph that is a node itself: an agent in a
swarm, under a supervisor, or in a graph by hand; or of a chain that a node runs, which is told by its name: a graph has
none, that of its agent, or that of its node. The outermost graph has no namespace. LangGraph for JavaScript has nodes
carry the graph's as well, so there the name has to be that of an agent.
"""

from __future__ import annotations

import re
from typing import Final

from turnwatch.sources.spans.shapes import METADATA
from turnwatch.sources.spans.span import SpanData
from turnwatch.sources.spans.values import first_text, shortened, unquoted

_OF_GRAPH: Final = re.compile(r'"checkpoint_ns": ?"([^"\\]+)"')
_AGENT: Final = re.compile(r'"lc_agent_name": ?"([^"\\]+)"')
_AGENT_NAMES: Final = (
    "traceloop.association.properties.lc_agent_name",
    "langfuse.observation.metadata.lc_agent_name",
    "langsmith.metadata.lc_agent_name",
)
_OF_NODE: Final = re.compile(r'"langgraph_checkpoint_ns": ?"([^"\\]+)"')
# What LangGraph calls a graph that has no name.
_UNNAMED: Final = "LangGraph"


def graph_name(span: SpanData) -> str:
    """What to call the agent whose graph this span is, where nothing else names it; empty for any other span."""
    attributes, shape = span.attributes, span.shape
    if shape.of_graph:
        of_graph, of_node = first_text(attributes, shape.of_graph), first_text(attributes, shape.of_node)
        agent = unquoted(first_text(attributes, _AGENT_NAMES))
    else:
        metadata = attributes.get(METADATA)  # OpenInference's
        if type(metadata) is not str or '"checkpoint_ns"' not in metadata:
            return ""
        graph, node = _OF_GRAPH.search(metadata), _OF_NODE.search(metadata)
        of_graph, of_node = graph[1] if graph else "", node[1] if node else ""
        named = _AGENT.search(metadata)
        agent = named[1] if named else ""
    if not of_graph or of_graph != of_node:
        return ""
    own_node = unquoted(of_node).rpartition("|")[2].partition(":")[0]
    name = str(attributes.get("traceloop.entity.name") or span.name)
    if name == _UNNAMED:
        return shortened(own_node)
    if agent:
        return shortened(name) if name == agent else ""
    return shortened(name) if name == own_node and not span.scope.startswith("@") else ""
