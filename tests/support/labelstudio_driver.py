"""Run by the Python that Label Studio's SDK is installed in.

Calls come on standard input, answers go to standard output, JSON a line. {"call":
"projects.create", "kwargs": {"title": …}} becomes client.projects.create(title=…); {"ask": ["POST",
path, body]} is a request.
"""

from __future__ import annotations

import json
import sys
import urllib.request
from typing import Any

from label_studio_sdk import LabelStudio


def plain(found: Any) -> Any:
    if hasattr(found, "model_dump"):
        return found.model_dump(mode="json")
    if isinstance(found, list | tuple):
        return [plain(one) for one in found]
    return (
        [plain(one) for one in found]
        if hasattr(found, "__next__") or type(found).__name__ == "SyncPager"
        else found
    )


def main(url: str, key: str) -> None:
    client = LabelStudio(base_url=url, api_key=key)
    for line in sys.stdin:
        wanted = json.loads(line)
        try:
            if "ask" in wanted:
                method, path, body = wanted["ask"]
                headers = {"Authorization": f"Token {key}", "Content-Type": "application/json"}
                data = None if body is None else json.dumps(body).encode()
                with urllib.request.urlopen(
                    urllib.request.Request(url + path, data, headers, method=method)
                ) as answer:
                    found = json.loads(answer.read() or b"null")
            else:
                call: Any = client
                for name in wanted["call"].split("."):
                    call = getattr(call, name)
                found = plain(call(**wanted["kwargs"]))
            reply = {"found": found}
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}"[:2000]}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


main(*sys.argv[1:])
