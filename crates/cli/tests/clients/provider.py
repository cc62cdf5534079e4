"""A model on loopback that says what it was told to say: the Responses API, as the Codex CLI speaks it."""

import http.server
import json
import threading

USAGE = {
    "input_tokens": 1,
    "input_tokens_details": None,
    "output_tokens": 1,
    "output_tokens_details": None,
    "total_tokens": 2,
}


class Provider:
    """Answers each request with the next of the replies, and keeps what it was asked."""

    def __init__(self, replies):
        self.replies = list(replies)
        self.requests, self.others = [], []
        provider = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                if not self.path.endswith("/responses"):
                    provider.others.append(f"POST {self.path}")
                    return self.answer(404, "application/json", b"{}")
                self.answer(200, "text/event-stream", provider.reply(json.loads(body)))

            def do_GET(self):
                provider.others.append(f"GET {self.path}")
                self.answer(404, "application/json", b"{}")

            def answer(self, status, media, body):
                self.send_response(status)
                self.send_header("content-type", media)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_address[1]}/v1"

    def reply(self, request):
        number = len(self.requests)
        self.requests.append(request)
        item = self.replies[number] if number < len(self.replies) else message("There is no more to say.")
        response = f"response-{number}"
        events = [
            {"type": "response.created", "response": {"id": response}},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": {"id": response, "usage": USAGE}},
        ]
        text = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
        return text.encode()


def message(text):
    content = [{"type": "output_text", "text": text}]
    return {"type": "message", "role": "assistant", "id": "message", "content": content}


def call(number, namespace, name, arguments):
    return {
        "type": "function_call",
        "id": f"item-{number}",
        "call_id": f"call-{number}",
        "namespace": namespace,
        "name": name,
        "arguments": json.dumps(arguments),
    }
