"""A model on this machine that says what a script has for it, in the four wire formats of the usual coding agents."""

import json
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from types import MappingProxyType
from typing import Any, Final, NamedTuple

Document = dict[str, Any]
Events = list[tuple[str, Document]]
USAGE: Final = {"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10}
ROUTE: Final = {"next_speaker": "user", "model_choice": "flash", "reasoning": "", "complexity_reasoning": ""}
"""Gemini CLI's own side requests."""


class Turn(NamedTuple):
    """The model's text, or the tool that it uses."""

    text: str = ""
    tool: str = ""
    arguments: Mapping[str, Any] = MappingProxyType({})


Script = Callable[[str, int], Turn]
"""From what the agent sent, and how many turns there were before, to the next."""


def messages(turn: Turn, body: Document) -> Events:
    """Anthropic's Messages, streamed."""
    block: Document = {"type": "text", "text": ""}
    delta: Document = {"type": "text_delta", "text": turn.text}
    if turn.tool:
        block = {"type": "tool_use", "id": f"toolu_{uuid.uuid4().hex[:20]}", "name": turn.tool, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(dict(turn.arguments))}
    message: Document = {
        "id": f"msg_{uuid.uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "content": [],
    }
    message |= {"model": body.get("model", ""), "stop_reason": None, "stop_sequence": None}
    message["usage"] = {"input_tokens": 5, "output_tokens": 1}
    ended = {"stop_reason": "tool_use" if turn.tool else "end_turn", "stop_sequence": None}
    told: list[Document] = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    ]
    return [(each["type"], each) for each in told]


def responses(turn: Turn, body: Document) -> Events:
    """OpenAI's Responses, streamed."""
    own = f"resp_{uuid.uuid4().hex}"
    content = [{"type": "output_text", "text": turn.text, "annotations": []}]
    item: Document = {"type": "message", "id": "m", "role": "assistant", "content": content}
    if turn.tool:
        item = {"type": "function_call", "id": "f", "call_id": f"call_{uuid.uuid4().hex[:8]}"}
        item |= {"name": turn.tool, "arguments": json.dumps(dict(turn.arguments))}
    usage = {"input_tokens": 5, "output_tokens": 5, "total_tokens": 10}
    told: list[Document] = [
        {"type": "response.created", "response": {"id": own}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"id": own, "usage": usage}},
    ]
    return [(each["type"], each) for each in told]


def completions(turn: Turn, body: Document) -> Events:
    """OpenAI's Chat Completions; whole where no stream is asked for."""
    delta: Document = {"role": "assistant", "content": turn.text}
    if turn.tool:
        function = {"name": turn.tool, "arguments": json.dumps(dict(turn.arguments))}
        call = {"index": 0, "id": f"call_{uuid.uuid4().hex[:8]}", "type": "function", "function": function}
        delta = {"role": "assistant", "tool_calls": [call]}
    reason = "tool_calls" if turn.tool else "stop"
    head = {"id": "c", "created": 1, "model": body.get("model", "")}
    if not body.get("stream"):
        choice = {"index": 0, "message": delta, "finish_reason": reason}
        return [("", {**head, "object": "chat.completion", "choices": [choice], "usage": USAGE})]
    head["object"] = "chat.completion.chunk"
    return [
        ("", {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}),
        ("", {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": USAGE}),
    ]


def contents(turn: Turn, body: Document) -> Events:
    """Gemini's generateContent."""
    if "responseJsonSchema" in body.get("generationConfig", {}):
        turn = Turn(json.dumps(ROUTE))
    part: Document = {"functionCall": {"name": turn.tool, "args": dict(turn.arguments)}}
    content = {"role": "model", "parts": [part if turn.tool else {"text": turn.text}]}
    usage = {"promptTokenCount": 5, "candidatesTokenCount": 5, "totalTokenCount": 10}
    candidate = {"content": content, "finishReason": "STOP", "index": 0}
    return [("", {"candidates": [candidate], "usageMetadata": usage})]


FORMATS: Final = {
    "messages": messages,
    "responses": responses,
    "completions": completions,
    "streamGenerateContent": contents,
    "generateContent": contents,
}
"""By the last word of a request's path."""


@contextmanager
def served(script: Script, prompt: str) -> Iterator[str]:
    """
    The address of a model that goes by `script` wherever `prompt`, a pattern, is in what an agent sends.

    Whatever else an agent asks (for a title, its next speaker) is answered by one word.
    """
    lock, turns = Lock(), 0

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *words: object) -> None:
            pass

        def do_HEAD(self) -> None:
            self._whole({})

        def do_GET(self) -> None:
            self._whole({"object": "list", "data": [{"id": "scripted", "object": "model"}], "models": []})

        def do_POST(self) -> None:
            nonlocal turns
            sent = self.rfile.read(int(self.headers.get("content-length") or 0))
            body = json.loads(sent or b"{}")
            word = re.split(r"[/:]", self.path.partition("?")[0])[-1]
            asked = json.dumps(body.get("messages") or body.get("input") or body.get("contents") or [])
            turn = Turn("ok")
            if re.search(prompt, asked) and (body.get("tools") or "aider" in asked):
                with lock:
                    turn, turns = script(sent.decode(), turns), turns + 1
            if word not in FORMATS:
                self._whole({"input_tokens": 5, "totalTokens": 5})
                return
            events = FORMATS[word](turn, body)
            if len(events) == 1 and word != "streamGenerateContent":
                self._whole(events[0][1])
            else:
                self._streamed(events, ends_with_done=word == "completions")

        def _whole(self, document: Document) -> None:
            raw = json.dumps(document).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def _streamed(self, events: Events, *, ends_with_done: bool) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("connection", "close")
            self.end_headers()
            for name, data in events:
                head = f"event: {name}\n" if name else ""
                self.wfile.write(f"{head}data: {json.dumps(data)}\n\n".encode())
            if ends_with_done:
                self.wfile.write(b"data: [DONE]\n\n")
            self.close_connection = True

        def handle(self) -> None:
            with suppress(ConnectionError):
                super().handle()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
