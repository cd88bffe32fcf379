"""A model that answers DSPy, which asks for tools in text and not through the API."""

import json

from frameworks.stub_model import Reply, Script


def in_dspys_form(script: Script) -> Script:
    """A script whose calls and answer are put in the fields that DSPy's ReAct asks for.

    ReAct's own tool ``finish`` stands for the answer, for which one more call is made then.
    """

    def answer(number, request):
        if "[[ ## next_tool_name ## ]]" not in request.text:
            return _fields(reasoning="They are known.", answer="Both orders are on their way.")
        reply = script(number, request)
        tool, arguments = reply.calls[0] if reply.calls else ("finish", {})
        return _fields(next_thought="Go on.", next_tool_name=tool, next_tool_args=json.dumps(arguments))

    return answer


def _fields(**fields):
    parts = [f"[[ ## {name} ## ]]\n{value}" for name, value in fields.items()]
    return Reply("\n\n".join([*parts, "[[ ## completed ## ]]"]))
