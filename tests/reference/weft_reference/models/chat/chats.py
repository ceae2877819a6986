"""Chats, tools and options to render."""

from __future__ import annotations

from typing import Any

SYSTEM = {"role": "system", "content": "You are a weaver. "}
USER = {"role": "user", "content": "What is a weft?\n"}
ANSWER = {"role": "assistant", "content": " The thread across.\n"}
NEXT = {"role": "user", "content": "And the warp? Ünïcode 😀 \"quoted\""}
TOOL = {
    "type": "function",
    "function": {
        "name": "count_threads",
        "description": "Counts the threads per centimetre, <b>exactly</b>.",
        "parameters": {
            "type": "object",
            "properties": {
                "cloth": {"type": "string", "description": "Naïve name", "enum": ["linen", "wool"]},
                "width": {"type": "number", "default": 1.5},
            },
            "required": ["cloth"],
        },
    },
}
OTHER_TOOL = {"type": "function", "function": {"name": "stop", "parameters": {"type": "object", "properties": {}}}}
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {
            "id": "abc123xyz",
            "type": "function",
            "function": {"name": "count_threads", "arguments": {"cloth": "linen", "width": 2}},
        }
    ],
}
TWO_CALLS = {
    "role": "assistant",
    "content": "Both.",
    "tool_calls": [
        *CALL["tool_calls"],  # type: ignore[misc]
        {"id": "abc123xy2", "type": "function", "function": {"name": "stop", "arguments": "{}"}},
    ],
}
RESULT = {"role": "tool", "name": "count_threads", "tool_call_id": "abc123xyz", "content": '{"threads": 12}'}
PROMPT = {"add_generation_prompt": True}

PLAIN: list[dict[str, Any]] = [
    {"messages": [USER]},
    {"messages": [USER], **PROMPT},
    {"messages": [SYSTEM, USER, ANSWER, NEXT], **PROMPT},
    {"messages": [USER, ANSWER], "continue_final_message": True},
    {"messages": [USER, {"role": "assistant", "content": "The thread"}], "continue_final_message": True},
    {"messages": [USER, NEXT], **PROMPT},
    {"messages": [{"role": "critic", "content": "Hm."}], **PROMPT},
    {"messages": [USER], "tools": [TOOL], **PROMPT},
    {"messages": [SYSTEM, USER, CALL, RESULT], "tools": [TOOL, OTHER_TOOL], **PROMPT},
    {"messages": [USER, TWO_CALLS, RESULT, {**RESULT, "content": "7"}, ANSWER], "tools": [TOOL]},
]
HEADERS = [
    *PLAIN,
    {"messages": [USER], "variables": {"date_string": "1 Jan 2030"}},
    {"messages": [SYSTEM, USER], "tools": [TOOL], "variables": {"tools_in_user_message": False}},
    {"messages": [SYSTEM], "tools": [TOOL]},
    {"messages": [USER, CALL, {**RESULT, "content": {"threads": [1, 2.5, None, True]}}], "tools": [OTHER_TOOL]},
]
CHATML = [
    *PLAIN,
    {"messages": [USER], "variables": {"enable_thinking": False}, **PROMPT},
    {"messages": [USER, {"role": "assistant", "content": "<think>\nA loom.\n</think>\n\nAcross."}, NEXT], **PROMPT},
    {"messages": [USER, {"role": "assistant", "content": "<think>\nA loom.\n</think>\n\nAcross."}]},
    {"messages": [USER, {"role": "assistant", "reasoning_content": "Hm.\n", "content": "Across."}]},
    {"messages": [USER, {"role": "assistant", "thinking": "Hm.", "content": "Across."}]},
    {"messages": [USER, {**CALL, "content": "Counting."}, RESULT, RESULT], **PROMPT},
]
INSTRUCTIONS = [*PLAIN, {"messages": [SYSTEM, USER, ANSWER, ANSWER]}, {"messages": [USER, {**RESULT, "content": {"content": [1, "a", None]}}]}]
TEXT = {"type": "text", "text": " Look: "}
IMAGE = {"type": "image"}
PARTS = [
    *PLAIN[:7],
    {"messages": [{"role": "user", "content": [TEXT, IMAGE, {"type": "text", "text": "here"}]}], **PROMPT},
    {"messages": [{"role": "system", "content": [TEXT]}, USER, ANSWER]},
    {"messages": [USER, {**ANSWER, "hidden": True}, NEXT, {"role": "end", "content": ""}, USER]},
    {"messages": [{"role": "user", "content": [{"type": "video"}]}]},
    {"messages": [{"role": "user", "content": 3}]},
    {"messages": [USER, {"role": "assistant", "content": [TEXT, {"type": "text", "text": "open "}]}], "continue_final_message": True},
]
DATA = {
    "text": "  xx mid x ",
    "flag": True,
    "none": None,
    "float": 1.0,
    "big": 1e22,
    "small": 1.5e-7,
    "list": [1, 2, 3],
    "inner": {"a": [1, 2]},
    "letters": "é\u0301\u2028\u00ad😀\"\\\n\t\u0001/",
    "empty": [],
}
VALUES = [
    {"messages": [{**USER, "data": DATA}, ANSWER]},
    {"messages": [{**USER, "content": "it's", "data": {**DATA, "flag": False, "list": [3, -1, 2]}}]},
]
SEVERAL = [
    {"messages": [USER], **PROMPT},
    {"messages": [USER], "tools": [TOOL], **PROMPT},
    {"messages": [USER], "template": "short"},
    {"messages": [USER], "template": "default", "tools": [TOOL]},
]
