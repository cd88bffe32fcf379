"""The message classes that bodies of OTLP traces are read with.

On the wire a ``map<string, AnyValue>`` and a ``repeated KeyValue`` are the same bytes (protobuf's language guide,
"Maps", backwards compatibility). Declared as maps, attributes take less than half the time to read, and whether one of
them is there can be asked without reading any.

So are a message inside another and the bytes of it. What a request holds of one scope stays bytes until its outline has
told whose it is: most of it is of no interest, and parsing that would be most of the work.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from opentelemetry.proto.common.v1 import common_pb2
from opentelemetry.proto.resource.v1 import resource_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

_PAIR: Final = ".opentelemetry.proto.common.v1.KeyValue"
_VALUE: Final = ".opentelemetry.proto.common.v1.AnyValue"
_ENTRY: Final = "AttributesEntry"


def _with_maps(messages: Iterable[DescriptorProto], inside: str) -> None:
    """Declare the attributes of these messages, and of those inside them, as maps."""
    for message in messages:
        name = f"{inside}.{message.name}"
        _with_maps(message.nested_type, name)
        for field in message.field:
            if field.name == "attributes" and field.type_name == _PAIR:
                field.type_name = f"{name}.{_ENTRY}"
                entry = message.nested_type.add(name=_ENTRY)
                entry.options.map_entry = True
                optional = FieldDescriptorProto.LABEL_OPTIONAL
                entry.field.add(name="key", number=1, type=FieldDescriptorProto.TYPE_STRING, label=optional)
                entry.field.add(
                    name="value", number=2, type=FieldDescriptorProto.TYPE_MESSAGE, label=optional, type_name=_VALUE
                )


def _as_bytes(message: DescriptorProto, name: str) -> None:
    """Declare a field that holds messages as the bytes of them."""
    for field in message.field:
        if field.name == name:
            field.type = FieldDescriptorProto.TYPE_BYTES
            field.ClearField("type_name")


def _messages() -> tuple[Any, Any, Any]:
    pool = descriptor_pool.DescriptorPool()
    for module in (common_pb2, resource_pb2, trace_pb2, trace_service_pb2):
        file = FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(file)
        _with_maps(file.message_type, f".{file.package}")
        if module is trace_pb2:
            messages = {message.name: message for message in file.message_type}
            _as_bytes(messages["ResourceSpans"], "scope_spans")
            outline = file.message_type.add()
            outline.CopyFrom(messages["ScopeSpans"])
            outline.name = "ScopeOutline"
            _as_bytes(outline, "spans")
        pool.AddSerializedFile(file.SerializeToString())
    request, scope = trace_service_pb2.ExportTraceServiceRequest.DESCRIPTOR, trace_pb2.ScopeSpans.DESCRIPTOR
    names = (request.full_name, scope.full_name, f"{scope.file.package}.ScopeOutline")
    found = [message_factory.GetMessageClass(pool.FindMessageTypeByName(name)) for name in names]
    return found[0], found[1], found[2]


TracesRequest, ScopeSpans, ScopeOutline = _messages()
"""An ExportTraceServiceRequest in which each ScopeSpans is bytes; a ScopeSpans in which attributes are maps from names
to AnyValues; and one in which each span is bytes."""
