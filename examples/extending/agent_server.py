"""The agent of the example: a small server that answers questions under a policy, and can be told to forget a section.

python agent_server.py 8700
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

POLICY = {
    "returns": ("return, back, refund", "Returns (section 1): within 30 days, with the receipt."),
    "shipping": ("parcel, ship, deliver", "Shipping (section 2): two working days, free from 50 euros."),
    "damage": ("broken, damaged, crack", "Damage (section 3): we replace it; send us a photo."),
    "privacy": ("data, privacy, delete", "Privacy (section 4): we delete your account within a week."),
}


def answer(question: str, forget: str | None = None) -> str:
    """Every section that the question touches, but for the one that is forgotten."""
    words = question.lower()
    said = [
        text
        for name, (keys, text) in POLICY.items()
        if name != forget and any(key in words for key in keys.split(", "))
    ]
    return " ".join(said) or "I do not know."


class Agent(BaseHTTPRequestHandler):
    """Answers POST requests with JSON."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if asked.get("model") == "withdrawn":
            self.send_error(500, "there is no such model")
            return
        body = json.dumps({"answer": answer(asked["question"], asked.get("forget"))}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Keep quiet."""


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Agent).serve_forever()
